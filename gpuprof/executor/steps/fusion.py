# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Run independent fused multiply-adds of a basic block together, as one operation on stacked registers.

A register-tiled kernel updates 64 accumulators of few lanes each; NumPy's cost per call would then be many
times that of the arithmetic. Within a basic block, multiply-adds that do not depend on one another are
collected, and whatever does not depend on them moves ahead.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from gpuprof.executor.arithmetic.floats import fused_multiply_add
from gpuprof.executor.lanes.masks import WARP
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes
from gpuprof.executor.program.flow import reads_and_writes
from gpuprof.executor.program.ptx import Instruction
from gpuprof.executor.steps.arithmetic_steps import arithmetic
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.coding import Coder, Step

_OPCODE = ("fma", "rn", "f32")
_FEWEST = 4
#: Elements of a stack that still fits the cache; a batch of more lanes gains nothing from stacking.
_STACK_ELEMENTS = 1 << 16
_F32 = ARITHMETIC["f32"]


def gathered(body: list[Instruction]) -> Iterator[Instruction | list[Instruction]]:
    """Yield a basic block in an equivalent order, with independent multiply-adds in lists."""
    group: list[Instruction] = []
    reads_of_group: set[str] = set()
    writes_of_group: set[str] = set()
    for item in body:
        reads, writes = (set(names) for names in reads_and_writes(item))
        conflict = reads & writes_of_group or writes & (reads_of_group | writes_of_group)
        if conflict and group:
            yield group
            group, reads_of_group, writes_of_group = [], set(), set()
        if item.opcode == _OPCODE and item.guard is None:
            group.append(item)
            reads_of_group |= reads
            writes_of_group |= writes
        else:
            yield item
    if group:
        yield group


def fused_step(coder: Coder, group: list[Instruction]) -> list[Step]:
    """Decode a group of independent multiply-adds, to one step if that pays.

    Args:
        coder: Decodes operands.
        group: The instructions.
    """
    singles = [arithmetic(coder, item) for item in group]
    if len(group) < _FEWEST:
        return singles
    stacks = [_Stack.of(coder, group, position) for position in (1, 2, 3)]
    writes = [coder.target(item.operands[0], item) for item in group]
    fma = fused_multiply_add("f32")

    def step(batch: Batch) -> None:
        if batch.blocks * batch.warps * WARP * len(group) > _STACK_ELEMENTS:
            for one in singles:
                one(batch)
            return
        results = fma(*(stack.gather(batch) for stack in stacks))
        mask = batch.mask
        for write, result in zip(writes, results, strict=True):
            write(batch, result, mask)

    return [step]


@dataclass(frozen=True)
class _Stack:
    """One operand of all instructions of a group: the different registers it names, and which is whose."""

    reads: list[Callable[[Batch], Lanes]]
    which: np.ndarray[tuple[int], np.dtype[np.intp]] | None

    @classmethod
    def of(cls, coder: Coder, group: list[Instruction], position: int) -> "_Stack":
        operands = [item.operands[position] for item in group]
        distinct = list(dict.fromkeys(operands))
        reads = [coder.reader(operand, _F32, group[0]) for operand in distinct]
        if len(distinct) == len(operands):
            return cls(reads, None)
        return cls(reads, np.array([distinct.index(operand) for operand in operands], dtype=np.intp))

    def gather(self, batch: Batch) -> Lanes:
        """Return the operand of every instruction: shape (instructions, blocks or 1, warps or 1, 32 or 1)."""
        values = [read(batch) for read in self.reads]
        shape = values[0].shape
        if any(value.shape != shape for value in values):
            shape = np.broadcast_shapes(*(value.shape for value in values))
            values = [np.broadcast_to(value, shape) for value in values]
        stacked = np.concatenate(values).reshape(len(values), *shape)
        return stacked if self.which is None else stacked[self.which]
