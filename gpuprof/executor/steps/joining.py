# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Run steps that do nothing but compute a register each, and follow each other, as one step.

What NumPy does for a batch of few lanes takes about as long as a few calls of Python do, of which single
steps make several for each instruction.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
from msgspec import Struct

from gpuprof.executor.arithmetic.mnemonic import Compute
from gpuprof.executor.lanes.scalars import Lanes, reinterpret
from gpuprof.executor.program.ptx import Imm, Instruction, Reg, Special, Sym
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.coding import Coder, Step
from gpuprof.executor.steps.launch_state import CLOCKS


class Plain(Struct, frozen=True):
    """A step that only computes a register, kept in slot `target`, from what `pick` finds in others.

    It `spares` what lanes have there that do not run it.
    """

    target: int
    kept: np.dtype[Any]
    compute: Compute
    pick: Callable[[list[Lanes]], Sequence[Lanes]]
    spares: bool


def note_plain(
    coder: Coder, item: Instruction, step: Step, compute: Compute, dtypes: tuple[np.dtype[Any], ...]
) -> Step:
    """Remember of a step, if it is so, that all it does is to compute its first operand from the others."""
    (target, *operands), slots = item.operands, coder.slots
    held = all(
        isinstance(each, Reg | Imm | Sym) or (isinstance(each, Special) and each.name not in CLOCKS)
        for each in operands
    )
    if item.guard is not None or not held or not isinstance(target, Reg) or len(operands) != len(dtypes):
        return step
    sources = [slots.source(each, dtype, item.line) for each, dtype in zip(operands, dtypes, strict=True)]
    if any(slots.kept[slot] != dtype for slot, dtype in zip(sources, dtypes, strict=True)):
        compute = partial(_read_as, compute, dtypes)
    pick = itemgetter(*sources) if len(sources) > 1 else itemgetter(slice(sources[0], sources[0] + 1))
    goal = slots.register(target.name, item.line)
    coder.plain[step] = Plain(goal, slots.kept[goal], compute, pick, target.name in coder.passing)
    return step


def _read_as(compute: Compute, dtypes: tuple[np.dtype[Any], ...], *values: Lanes) -> Any:
    return compute(*map(reinterpret, values, dtypes))


def joined(coder: Coder, steps: list[Step]) -> list[Step]:
    """Return steps that do the same as these."""
    result: list[Step] = []
    for plain, group in groupby(steps, coder.plain.__contains__):
        members = list(group)
        result += [_arithmetic(coder, members)] if plain else members
    return result


def _arithmetic(coder: Coder, members: list[Step]) -> Step:
    known: list[Plain] = [coder.plain[member] for member in members]
    work = [(each.target, each.kept, each.compute, each.pick) for each in known]
    spares = any(each.spares for each in known)

    def step(batch: Batch) -> None:
        if spares and not batch.alone:
            for member in members:
                member(batch)
            return
        registers = batch.registers
        for target, kept, compute, pick in work:
            value = compute(*pick(registers))
            registers[target] = value if value.dtype is kept else reinterpret(value, kept)

    return step
