# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Addresses of shared memory in a cluster of several blocks, and what goes wrong with them.

An address holds the rank of its block above the offset there. Instructions for a block's own memory
(`.shared::cta`) take addresses of their own block alone; those for the cluster's (`.shared::cluster`), and
generic ones, take all.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.faults import FaultKind
from gpuprof.executor.lanes.masks import Bools, Mask
from gpuprof.executor.memory.windows import RANK_SHIFT
from gpuprof.executor.program.ptx import Instruction
from gpuprof.executor.steps.batch import Batch

_OFFSET = (1 << RANK_SHIFT) - 1

Addresses = NDArray[np.int64]


def names_cluster(item: Instruction) -> bool:
    """Tell whether an instruction says `.shared::cluster`."""
    return ("shared", "cluster") in zip(item.opcode, item.opcode[1:], strict=False)


def in_block(address: NDArray[np.integer], rank: int) -> Addresses:
    """Return addresses of shared memory as they are in the block of a rank."""
    return np.asarray((address.astype(np.int64) & _OFFSET) | (rank << RANK_SHIFT))


@dataclass(frozen=True)
class ClusterAccess:
    """What lanes access of the shared memory of their cluster's blocks.

    `start` counts from where the kernel's own shared memory starts in each block.
    """

    batch: Batch
    line: int
    start: Addresses
    size: Addresses | int
    mask: Mask

    @property
    def _address(self) -> Addresses:
        return self.start + self.batch.layout.shared_start

    @property
    def _rank(self) -> Addresses:
        return self._address >> RANK_SHIFT

    @property
    def _offset(self) -> Addresses:
        return (self._address & _OFFSET) - self.batch.layout.shared_start

    def places(self, *, remote: bool, whole: bool = True) -> Addresses:
        """Return where that lies among the memory of the cluster's blocks.

        A `remote` access may go to another block; a `whole` one must lie inside the memory of a block.
        """
        layout = self.batch.layout
        self._require_rank((self._address < 0) | (self._rank >= layout.blocks), "its cluster")
        if not remote:
            self._require_rank(self._rank != layout.rank_of_warp, "its own block")
        if whole:
            past = (self._offset < 0) | (self._offset + self.size > layout.shared_bytes)
            self._refuse(past, FaultKind.OUT_OF_BOUNDS, f"has {layout.shared_bytes} bytes")
        place = self._rank * layout.stride + self._offset
        return place if self.mask.whole else np.where(self.mask.narrowed_to(place.shape), place, 0)

    def require_aligned(self) -> None:
        """Report the first lane whose address is not a multiple of what it accesses."""
        unit = self.size
        self._refuse(self._offset % unit != 0, FaultKind.MISALIGNED, f"is not aligned to {unit} there")

    def _require_rank(self, outside: Bools, where: str) -> None:
        text = f"accesses shared memory of {where} at {{:#x}}, which is an address of rank {{}}; the cluster"
        text += f" has {self.batch.layout.blocks} blocks"
        shown = self._address, self._rank
        refuse = self.batch.refuse
        refuse(FaultKind.OUT_OF_BOUNDS, self.mask, outside, self.line, text, *shown, at=self._address)

    def _refuse(self, outside: Bools, kind: FaultKind, why: str) -> None:
        text = f"accesses {{}} bytes at byte {{}} of the shared memory of rank {{}}, which {why}"
        shown = np.asarray(self.size), self._offset, self._rank
        self.batch.refuse(kind, self.mask, outside, self.line, text, *shown, at=self._offset, shared=True)
