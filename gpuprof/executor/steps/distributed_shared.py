# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Addresses of shared memory in a cluster of several blocks, and what converts between spaces and blocks.

An address holds the rank of its block above the offset there. Instructions for a block's own memory
(`.shared::cta`) take addresses of their own block alone; those for the cluster's (`.shared::cluster`), and
generic ones, take all.
"""

from collections.abc import Callable
from functools import cached_property

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from gpuprof.executor.faults import FaultKind, UnsupportedInstruction
from gpuprof.executor.lanes.masks import Bools, Mask
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes
from gpuprof.executor.memory.windows import (
    CONSTANT_WINDOW,
    LOCAL_WINDOW,
    RANK_SHIFT,
    SHARED_WINDOW,
    WINDOW_BYTES,
)
from gpuprof.executor.program.ptx import Instruction
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.coding import Coder, Step, computing

_OFFSET = (1 << RANK_SHIFT) - 1

Addresses = NDArray[np.int64]


def names_cluster(item: Instruction) -> bool:
    """Tell whether an instruction says `.shared::cluster`."""
    return ("shared", "cluster") in zip(item.opcode, item.opcode[1:], strict=False)


def in_block(address: NDArray[np.integer], rank: int | Addresses) -> Addresses:
    """Return addresses of shared memory as they are in the block of a rank."""
    return np.asarray((address.astype(np.int64) & _OFFSET) | (rank << RANK_SHIFT))


class ClusterAccess(Struct, frozen=True, dict=True):
    """What lanes access of the shared memory of their cluster's blocks.

    `start` counts from where the kernel's own shared memory starts in each block.
    """

    batch: Batch
    line: int
    start: Addresses
    size: Addresses | int
    mask: Mask

    @cached_property
    def _address(self) -> Addresses:
        return self.start + self.batch.layout.shared_start

    @cached_property
    def _rank(self) -> Addresses:
        return self._address >> RANK_SHIFT

    @cached_property
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


_I64, _U32 = np.dtype(np.int64), np.dtype(np.uint32)
_RANKS = WINDOW_BYTES >> RANK_SHIFT
_WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "const": CONSTANT_WINDOW}
_SPACES = (*_WINDOWS, "global", "param")


def convert_address(coder: Coder, item: Instruction) -> Step:
    """`cvta`: between the addresses of one space and generic ones."""
    space, sign = _space(item), -1 if "to" in item.opcode else 1
    read = coder.reader(item.operands[1], _I64, item)
    if space == "const":
        window = coder.slots.constant_window()
        return computing(coder, item, lambda batch: read(batch) + sign * batch.registers[window])
    if space == "param":
        return computing(coder, item, parameter_address(coder, read))
    distance = sign * _WINDOWS.get(space, 0)
    return computing(coder, item, lambda batch: read(batch) + distance)


def parameter_address(coder: Coder, read: Callable[[Batch], Lanes]) -> Callable[[Batch], Lanes]:
    """Return a reader of an address among the parameters, of which 32 bits may be kept."""
    start = coder.slots.parameter_window()

    def whole(batch: Batch) -> Lanes:
        first = batch.registers[start]
        return np.asarray(first + ((read(batch) - first) & 0xFFFF_FFFF))

    return whole


def is_in_space(coder: Coder, item: Instruction) -> Step:
    """`isspacep`: does a generic address point into a space?"""
    space, read = _space(item), coder.reader(item.operands[1], _I64, item)
    own = space == "shared" and not names_cluster(item)

    def belongs(batch: Batch) -> Bools:
        address = read(batch)
        if space == "shared" and batch.layout.several:
            rank = (address - SHARED_WINDOW) >> RANK_SHIFT
            return np.asarray(
                rank == batch.layout.rank_of_warp if own else (rank >= 0) & (rank < batch.layout.blocks)
            )
        if space in _WINDOWS:
            return _inside(address, _WINDOWS[space])
        elsewhere = [_inside(address, window) for window in _WINDOWS.values()]
        return np.asarray(~np.logical_or.reduce(elsewhere))

    return computing(coder, item, belongs)


def map_address(coder: Coder, item: Instruction) -> Step:
    """`mapa`: the address that a variable has in the shared memory of another block."""
    near = "shared" in item.opcode
    kind = ARITHMETIC[item.opcode[-1]]
    read = coder.reader(item.operands[1], kind, item)
    read_rank, window = coder.reader(item.operands[2], _U32, item), 0 if near else SHARED_WINDOW

    def mapped(batch: Batch) -> Lanes:
        address = in_block(read(batch).astype(np.int64) - window, read_rank(batch).astype(np.int64))
        return (window + address).astype(kind)

    return computing(coder, item, mapped)


def rank_of_address(coder: Coder, item: Instruction) -> Step:
    """`getctarank`: the rank of the block whose shared memory an address belongs to."""
    near = "shared" in item.opcode
    read = coder.reader(item.operands[1], ARITHMETIC[item.opcode[-1]] if near else _I64, item)

    def rank(batch: Batch) -> Lanes:
        address = read(batch).astype(np.int64) - (0 if near else SHARED_WINDOW)
        return ((address >> RANK_SHIFT) & (_RANKS - 1)).astype(np.uint32)

    return computing(coder, item, rank)


def _space(item: Instruction) -> str:
    space = next((part for part in item.opcode if part in _SPACES), None)
    if space is None or (space == "param" and item.opcode[0] == "isspacep"):
        raise UnsupportedInstruction(item.name, item.line)
    return space


def _inside(address: Lanes, window: int) -> Bools:
    return np.asarray((address >= window) & (address < window + WINDOW_BYTES))
