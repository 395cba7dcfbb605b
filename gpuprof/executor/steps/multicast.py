# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Copies that go to several blocks of a cluster: `.multicast::cluster`."""

from collections.abc import Callable, Iterator

import numpy as np

from gpuprof.executor.faults import FaultKind
from gpuprof.executor.lanes.masks import Mask, first_true
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes
from gpuprof.executor.program.ptx import Instruction
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.coding import Coder

_U16 = ARITHMETIC["u16"]


class Multicast:
    """The blocks that a copy goes to, by the bits of its last operand."""

    def __init__(self, read: Callable[[Batch], Lanes] | None, line: int) -> None:
        self._read = read
        self._line = line

    @classmethod
    def of(cls, coder: Coder, item: Instruction) -> "Multicast":
        """Decode the operand, if the instruction has one."""
        several = "multicast" in item.opcode
        return cls(coder.reader(item.operands[-1], _U16, item) if several else None, item.line)

    def __call__(self, batch: Batch, mask: Mask) -> Iterator[tuple[int | None, Mask]]:
        """Yield the rank of each block, and the lanes whose copies go there; None for where these say."""
        if self._read is None:
            yield None, mask
            return
        blocks, count = self._read(batch).astype(np.int64), batch.layout.blocks
        wrong = ((blocks >> count) != 0) & mask.lanes
        if wrong.any():
            position = first_true(wrong)
            asked = int(np.broadcast_to(blocks, wrong.shape)[position])
            text = f"copies to the blocks of mask {asked:#x}, but its cluster has {count}"
            batch.fault(FaultKind.OUT_OF_BOUNDS, text, self._line, position)
        for rank in range(count):
            lanes = ((blocks >> rank) & 1 == 1) & mask.lanes
            if lanes.any():
                yield rank, mask.of(lanes)
