# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The undefined bits of an instruction's operands, and the faults where they must have none."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np
from msgspec import Struct

from gpuprof.executor.definedness.state import UndefinedBits
from gpuprof.executor.definedness.undefined import Undefined, bits_dtype, either
from gpuprof.executor.faults import UnsupportedInstruction
from gpuprof.executor.lanes.masks import Bools, Mask
from gpuprof.executor.lanes.scalars import Lanes, reinterpret
from gpuprof.executor.program.flow import reads_and_writes
from gpuprof.executor.program.ptx import Instruction, Not, Operand, Reg, Vec
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.coding import Coder, Step


def followed(batch: Batch) -> UndefinedBits:
    """Return what is undefined of a batch whose program follows it."""
    assert isinstance(batch.shadow, UndefinedBits)
    return batch.shadow


class RegisterOperand(Struct, frozen=True):
    """A register."""

    slot: int
    kept: np.dtype[Any]

    @classmethod
    def of(cls, coder: Coder, name: str, line: int) -> Self:
        slot = coder.slots.register(name, line)
        if coder.slots.kept[slot].kind == "c":
            raise UnsupportedInstruction(".reg .b128 where undefined values are followed", line)
        return cls(slot, coder.slots.kept[slot])

    def undefined(self, batch: Batch) -> Undefined | None:
        return followed(batch).registers.get(self.slot)

    def bits(self, batch: Batch) -> Lanes:
        """Return its undefined bits as if they were its value."""
        found = self.undefined(batch)
        return np.zeros((1, 1, 1), dtype=self.kept) if found is None else found.bits.view(self.kept)


class Target(Struct, frozen=True):
    """A register that an instruction writes: `keeps` as for `Coder.target`, whose choices it follows.

    Attributes:
        place: The register.
        guarded: Whether the instruction has a guard.
        spares: Whether lanes that do not run the instruction may need what the register held.
    """

    place: RegisterOperand
    guarded: bool
    spares: bool

    def put(self, batch: Batch, value: Undefined | None, mask: Mask) -> None:
        """Note what of the new value is undefined; None when nothing is."""
        registers, slot = followed(batch).registers, self.place.slot
        old = registers.get(slot)
        if value is None and old is None:
            return
        new = value and Undefined(reinterpret(value.bits, bits_dtype(self.place.kept)), value.origin).within(
            mask.lanes
        )
        if old is not None and not mask.whole and (self.guarded or (self.spares and not batch.alone)):
            new = either(new, old.within(~mask.lanes))
        if new is None:
            registers.pop(slot, None)
        else:
            registers[slot] = new


def targets_of(coder: Coder, item: Instruction) -> list[Target]:
    """Return the registers that an instruction writes, in the order of its operands."""
    return [target_of(coder, item, name) for name in reads_and_writes(item)[1]]


def target_of(coder: Coder, item: Instruction, name: str) -> Target:
    """Return a register that an instruction writes, by its name."""
    return Target(RegisterOperand.of(coder, name, item.line), item.guard is not None, name in coder.passing)


def sources_of(coder: Coder, item: Instruction) -> list[RegisterOperand]:
    """Return the registers that an instruction reads, but for its guard."""
    names = reads_and_writes(item)[0]
    return [RegisterOperand.of(coder, name, item.line) for name in (names[1:] if item.guard else names)]


def places_in(coder: Coder, operands: Iterable[Operand], line: int) -> list[RegisterOperand]:
    """Return the registers among operands, those in braces and negated ones included."""
    found: list[RegisterOperand] = []
    for operand in operands:
        if isinstance(operand, Reg):
            found.append(RegisterOperand.of(coder, operand.name, line))
        elif isinstance(operand, Vec):
            found += places_in(coder, operand.items, line)
        elif isinstance(operand, Not):
            found += places_in(coder, (operand.of,), line)
    return found


def consuming(
    coder: Coder, item: Instruction, step: Step, places: Iterable[RegisterOperand], use: str
) -> Step:
    """Return a step that needs some registers defined, and leaves its targets so."""
    targets = targets_of(coder, item)

    def find(batch: Batch, mask: Mask) -> list[None]:
        require(batch, places, mask.lanes, item.line, use)
        return [None] * len(targets)

    return following(coder, item, step, places, targets, find)


def following(
    coder: Coder,
    item: Instruction,
    step: Step,
    places: Iterable[RegisterOperand],
    targets: Sequence[Target],
    find: Callable[[Batch, Mask], Sequence[Undefined | None]],
) -> Step:
    """Return a step after which each target is as undefined as `find` said before it, of these places."""
    masked, slots = coder.mask(item), {place.slot for place in (*places, *(each.place for each in targets))}

    def run(batch: Batch) -> None:
        if followed(batch).registers.keys().isdisjoint(slots):
            step(batch)
            return
        mask = masked(batch)
        found = find(batch, mask)
        step(batch)
        for target, value in zip(targets, found, strict=True):
            target.put(batch, value, mask)

    return run


def require(batch: Batch, places: Iterable[RegisterOperand], lanes: Bools, line: int, use: str) -> None:
    """Report the first of these lanes for which a register is undefined; `use` says what it does with it."""
    for place in places:
        followed(batch).require(place.undefined(batch), lanes, line, use)
