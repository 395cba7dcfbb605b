# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""An observer of steps that follows undefined values.

Reading what nobody wrote is no fault by itself: tiled kernels load a tile past the edge, or the next one
where there is none, and use nothing of it. What counts is where such a value ends. Each bit of a register, of
shared and of local memory is defined or not, and every instruction says which bits of its result depend on
undefined ones of its operands. An undefined value must not reach an address, a branch or guard, a barrier, an
atomic operation, the copy engine, or global memory.

Shared and local memory and the registers start undefined, and global memory is always defined.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from gpuprof.executor.arithmetic.instruction_table import TABLE
from gpuprof.executor.definedness import memory_rules, value_rules
from gpuprof.executor.definedness.operands import RegisterOperand, consuming, require, sources_of, targets_of
from gpuprof.executor.definedness.state import UndefinedBits
from gpuprof.executor.program.ptx import Instruction
from gpuprof.executor.steps import matrix_steps, memory_steps, mma_steps, wmma_steps
from gpuprof.executor.steps.batch import Batch, OwnMemory
from gpuprof.executor.steps.coding import Coder, Step, StepObserver

#: From an instruction and its step to the step that also follows undefined values.
Rule = Callable[[Coder, Instruction, Step], Step]

_USES = {
    "mbarrier": "gives an operation on an mbarrier",
    "cp": "gives an asynchronous copy",
    "bar": "gives a barrier",
    "barrier": "gives a barrier",
}


def _consumes(coder: Coder, item: Instruction, step: Step) -> Step:
    """Whatever has no rule of its own: it needs defined operands, and its results are defined."""
    use = _USES.get(item.opcode[0], f"gives {item.name}")
    return consuming(coder, item, step, sources_of(coder, item), use)


_RULES: dict[str, Rule] = {
    **dict.fromkeys(TABLE, value_rules.arithmetic),
    "mov": value_rules.move,
    "cvta": value_rules.arithmetic,
    "shfl": value_rules.shuffle,
    "vote": value_rules.vote,
    "match": value_rules.across_the_warp,
    "redux": value_rules.across_the_warp,
    "ld": memory_rules.load,
    "ldu": memory_rules.load,
    "st": partial(memory_rules.store, decode=memory_steps.store),
    "atom": memory_rules.atomic,
    "red": memory_rules.atomic,
    "save_frame": memory_rules.save_frame,
    "restore_frame": memory_rules.restore_frame,
    "mma.sp": _consumes,
    "mma": partial(value_rules.multiply, decode=mma_steps.multiply),
    "wmma.load": memory_rules.load,
    "wmma.store": partial(memory_rules.store, decode=wmma_steps.store),
    "wmma": partial(value_rules.multiply, decode=wmma_steps.multiply),
    "wgmma.mma_async": value_rules.multiply_by_warpgroups,
    "ldmatrix": memory_rules.load,
    "stmatrix": partial(memory_rules.store, decode=matrix_steps.store_matrix),
    "movmatrix": value_rules.move,
}


class Definedness(StepObserver):
    """Follows undefined values of every batch of a program."""

    def begin(self, batch: Batch, own: OwnMemory, unwritten: Mapping[int, np.dtype[Any]]) -> None:
        batch.shadow = state = UndefinedBits(batch, own, unwritten)
        batch.events.observe([state], [])

    def around(self, coder: Coder, item: Instruction, step: Step) -> Step:
        """As an observer: a step that does what `step` does, and follows undefined values."""
        rule = _RULES.get(".".join(item.opcode[:2]), _RULES.get(item.opcode[0], _consumes))
        inner = rule(coder, item, step)
        if item.guard is None:
            return inner
        guard = [RegisterOperand.of(coder, item.guard, item.line)]

        def guarded(batch: Batch) -> None:
            require(batch, guard, batch.mask.lanes, item.line, "predicates an instruction on")
            inner(batch)

        return guarded

    def before_end(self, coder: Coder, item: Instruction) -> Step | None:
        """As an observer: of a branch, or of a barrier with operands."""
        places = sources_of(coder, item)
        use = _USES.get(item.opcode[0], "branches on")
        if item.guard is not None:
            places.append(RegisterOperand.of(coder, item.guard, item.line))
        targets = targets_of(coder, item)
        if not places and not targets:
            return None

        def step(batch: Batch) -> None:
            require(batch, places, batch.mask.lanes, item.line, use)
            for target in targets:
                target.put(batch, None, batch.mask)

        return step
