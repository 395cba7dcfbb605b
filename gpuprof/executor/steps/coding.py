# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What the decoders of all instructions share: operands, destinations, predicates and counting sites."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from gpuprof.executor.faults import UnsupportedInstruction
from gpuprof.executor.lanes.masks import Mask
from gpuprof.executor.lanes.scalars import Lanes, reinterpret
from gpuprof.executor.lanes.tally import Site
from gpuprof.executor.program.guesses import Ends
from gpuprof.executor.program.ptx import Imm, Instruction, Not, Operand, Reg, Special
from gpuprof.executor.program.slots import Slots
from gpuprof.executor.steps.batch import Batch, OwnMemory
from gpuprof.executor.steps.launch_state import CLOCKS

#: One decoded instruction: does its work on the batch's current mask.
Step = Callable[[Batch], None]
#: Writes a value to a destination for the lanes of a mask.
Write = Callable[[Batch, Lanes, Mask], None]


class StepObserver(Protocol):
    """Whoever must see what goes through registers: it stands around each step of a program as decoded.

    The steps of a program that nobody observes so are several instructions each where that is faster.
    """

    def around(self, coder: "Coder", item: Instruction, step: Step) -> Step:
        """Return a step that does what the step of an instruction does, and observes."""

    def before_end(self, coder: "Coder", item: Instruction) -> Step | None:
        """Return a step that goes before a branch or barrier, if there is anything to observe."""

    def begin(self, batch: Batch, own: OwnMemory, unwritten: Mapping[int, np.dtype[Any]]) -> None:
        """A batch begins; the slots of `unwritten` registers may be read before anything is written there."""


@dataclass
class Coder:
    """Decodes operands of one function.

    Attributes:
        passing: Registers whose value may be needed by lanes that do not run the instruction writing it;
            all others are written whole, without sparing idle lanes.
        shared_start: Address of the first byte of the kernel's own shared memory. Accesses subtract it, so
            that behind them a byte's number is its place in that memory.
        guesses: `id` of each plain load whose value a compare-and-swap checks.
        idle: `id` of each plain load whose value guarded stores alone take, and these.
        exchanged: `id` of each load of shared memory whose value a shuffle takes.
        uncounted: Families of accesses that also go another way, past their counters: by the copy engine, or
            by textures and surfaces.
        carry: Slot of the carry flag, which has no name in PTX.
    """

    slots: Slots
    parameters: dict[str, int]
    passing: set[str]
    shared_start: int = 0
    guesses: Collection[int] = ()
    idle: Mapping[int, Ends] = field(default_factory=dict)
    exchanged: Collection[int] = ()
    sites: list[Site] = field(default_factory=list)
    shared_granule: int = 16
    phased: bool = False
    fences: bool = False
    uncounted: set[str] = field(default_factory=set)
    unmodelled: list[tuple[str, int]] = field(default_factory=list)
    clocks: set[str] = field(default_factory=set)
    carry: int = field(init=False)

    def __post_init__(self) -> None:
        self.carry = self.slots.scratch(np.dtype(np.bool_))

    def site(self, family: str, item: Instruction, **names: str) -> int:
        """Add a counting site, some of whose events have `names` of their own; return its number."""
        self.sites.append(Site(family, item.line, item.ptx_line, names))
        return len(self.sites) - 1

    def parameter_offset(self, name: str, line: int) -> int:
        if name not in self.parameters:
            raise UnsupportedInstruction(f"parameter {name}", line)
        return self.parameters[name]

    def reader(self, operand: Operand, dtype: np.dtype[Any], item: Instruction) -> Callable[[Batch], Lanes]:
        """Return a function that reads an operand as `dtype`."""
        if isinstance(operand, Special) and operand.name in CLOCKS:
            name = operand.name
            self.clocks.add(name)
            return lambda batch: reinterpret(batch.clock.read(name), dtype)
        slot = self.slots.source(operand, dtype, item.line)
        if self.slots.kept[slot] == dtype:
            return lambda batch: batch.registers[slot]
        return lambda batch: reinterpret(batch.registers[slot], dtype)

    def predicate(self, operand: Operand, item: Instruction) -> Callable[[Batch], Lanes]:
        """Return a function that reads a predicate operand, `p` or `!p`."""
        if isinstance(operand, Not):
            inner = self.reader(operand.of, np.dtype(np.bool_), item)
            return lambda batch: ~inner(batch)
        return self.reader(operand, np.dtype(np.bool_), item)

    def target(self, operand: Operand, item: Instruction) -> Write:
        """Return a function that writes a destination register; `_` discards."""
        if not isinstance(operand, Reg):
            return _discard
        slot = self.slots.register(operand.name, item.line)
        kept = self.slots.kept[slot]
        spares = operand.name in self.passing
        guarded = item.guard is not None

        def write(batch: Batch, value: Lanes, mask: Mask) -> None:
            if value.dtype != kept:
                value = reinterpret(value, kept)
            if (guarded and not mask.whole) or (spares and not batch.alone):
                value = np.where(mask.lanes, value, batch.registers[slot])
            batch.registers[slot] = value

        return write

    def mask(self, item: Instruction) -> Callable[[Batch], Mask]:
        """Return a function that gives the lanes that execute an instruction."""
        if item.guard is None:
            return lambda batch: batch.mask
        slot, negated = self.slots.register(item.guard, item.line), item.negated

        def masked(batch: Batch) -> Mask:
            holds = batch.registers[slot]
            return batch.mask.of(batch.mask.lanes & (~holds if negated else holds))

        return masked


def where_active(coder: Coder, item: Instruction, act: Callable[[Batch, Mask], None]) -> Step:
    """Return the step of an instruction that does something if any lane executes it."""
    masked = coder.mask(item)

    def step(batch: Batch) -> None:
        mask = masked(batch)
        if not mask.empty:
            act(batch, mask)

    return step


def computing(coder: Coder, item: Instruction, compute: Callable[[Batch], Lanes]) -> Step:
    """Return the step of an instruction that does nothing but compute its first operand."""
    write, masked = coder.target(item.operands[0], item), coder.mask(item)
    return lambda batch: write(batch, compute(batch), masked(batch))


def group_step(coder: Coder, item: Instruction, groups: Callable[[Batch], Any]) -> Step:
    """Return the step that closes a group of copies or products, or waits for all groups but the newest."""
    masked = coder.mask(item)
    if "commit_group" in item.opcode:
        return lambda batch: groups(batch).commit(masked(batch))
    count = Imm(0) if "wait_all" in item.opcode else item.operands[0]
    if not isinstance(count, Imm):
        raise UnsupportedInstruction(item.name, item.line)
    newest = None if "wait_all" in item.opcode else count.bits
    how = {"reads_only": True} if "read" in item.opcode else {}
    return lambda batch: groups(batch).wait(masked(batch), newest, **how)


def refusal(coder: Coder, item: Instruction, what: str) -> Step:
    """Return a step for what is not modelled: it stops the run when a thread reaches it."""
    coder.unmodelled.append((what, item.line))

    def stop(batch: Batch, mask: Mask) -> None:
        raise UnsupportedInstruction(what, item.line, batch.names(mask.first()))

    return where_active(coder, item, stop)


def _discard(batch: Batch, value: Lanes, mask: Mask) -> None:
    """Write to `_`."""
