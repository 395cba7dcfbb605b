# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The undefined bits of an instruction's operands, and the faults where they must have none."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from gpuprof.executor.faults import FaultKind, SharedByte, UnsupportedInstruction
from gpuprof.executor.lanes.masks import Bools, Mask, first_true
from gpuprof.executor.lanes.scalars import Lanes, reinterpret
from gpuprof.executor.lanes.undefined import (
    ABSENT_LANE,
    REGISTER,
    Undefined,
    bits_dtype,
    either,
    line_and_byte,
)
from gpuprof.executor.memory.followed_memory import Followed
from gpuprof.executor.program.flow import reads_and_writes
from gpuprof.executor.program.ptx import Instruction, Not, Operand, Reg, Vec
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.coding import Coder


def followed(batch: Batch) -> Followed:
    """Return what is undefined of a batch whose program follows it."""
    assert batch.followed is not None
    return batch.followed


@dataclass(frozen=True)
class RegisterOperand:
    """A register."""

    slot: int
    kept: np.dtype[Any]

    @classmethod
    def of(cls, coder: Coder, name: str, line: int) -> Self:
        """Return the place of a register, by its name."""
        slot = coder.slots.register(name, line)
        if coder.slots.kept[slot].kind == "c":
            raise UnsupportedInstruction(".reg .b128 where undefined values are followed", line)
        return cls(slot, coder.slots.kept[slot])

    def undefined(self, batch: Batch) -> Undefined | None:
        """Return its undefined bits."""
        return followed(batch).registers.get(self.slot)

    def read_as(self, batch: Batch, dtype: np.dtype[Any]) -> Undefined | None:
        """Return its undefined bits, cut off or extended as the value is that is read as `dtype`."""
        found = self.undefined(batch)
        if found is None:
            return None
        return Undefined(reinterpret(found.bits, bits_dtype(dtype)), found.origin)


@dataclass(frozen=True)
class Target:
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


def require(batch: Batch, places: Iterable[RegisterOperand], lanes: Bools, line: int, use: str) -> None:
    """Report the first of these lanes for which a register is undefined; `use` says what it does with it."""
    for place in places:
        found = place.undefined(batch)
        if found is not None:
            require_defined(batch, found, lanes, line, use)


def require_defined(batch: Batch, value: Undefined | None, lanes: Bools, line: int, use: str) -> None:
    """Report the first of these lanes whose value is undefined."""
    if value is None or not (wrong := value.lanes & lanes).any():
        return
    position = first_true(wrong)
    refuse(batch, int(spread(value.origin, batch)[position]), position, line, use)


def refuse(batch: Batch, origin: int, position: tuple[int, int, int], line: int, use: str) -> None:
    """Raise the fault of a thread that lets an undefined value count."""
    batch.events.hear("settle", None)  # what went wrong before comes first
    depends = f"{use} a value that depends on"
    if origin == REGISTER:
        detail = f"{depends} a register to which nothing had been written"
        batch.fault(FaultKind.UNINITIALISED_REGISTER, detail, line, position)
    read_at, byte = line_and_byte(origin)
    if byte == ABSENT_LANE:
        detail = f"{depends} a lane that took no part when line {read_at} read it"
        batch.fault(FaultKind.ABSENT_LANE, detail, line, position)
    detail = f"{depends} byte {byte} of shared memory, which line {read_at} read and which was never written"
    place = SharedByte(byte, read=(read_at, use))
    batch.fault(FaultKind.UNINITIALISED_SHARED, detail, line, position, place)


def spread(value: Lanes, batch: Batch) -> Lanes:
    """Return a value with an element for every lane of the batch."""
    return np.broadcast_to(value, (batch.blocks, batch.warps, 32))
