# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Run the float32 arithmetic of a basic block together, as one call into machine code.

A register-tiled kernel updates 64 accumulators of few lanes each, many times; NumPy's cost per call would
then be many times that of the arithmetic. Within a basic block, sums and products are collected; whatever
does not depend on these moves ahead.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from gpuprof.executor.arithmetic.float_runs import OPERATIONS, Tape
from gpuprof.executor.arithmetic.instruction_table import TABLE
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes
from gpuprof.executor.program.flow import reads_and_writes
from gpuprof.executor.program.ptx import Instruction, Operand, Reg
from gpuprof.executor.steps.arithmetic_steps import arithmetic, move
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.coding import Coder, Step

#: What is collected, and what a tape calls it; a move only gives a value another name.
_COLLECTED: dict[tuple[str, ...], str] = {("mov", "f32"): ""}
_COLLECTED |= {(name, *rounded, "f32"): name for name in OPERATIONS for rounded in ((), ("rn",))}
#: Below this a call of its own for each is as cheap.
_FEWEST = 3
_F32 = ARITHMETIC["f32"]
#: What does nothing but compute its targets of registers.
PURE = frozenset({*TABLE, "mov", "cvta", "isspacep"})


def gathered(body: list[Instruction]) -> Iterator[Instruction | list[Instruction]]:
    """Yield a basic block in an equivalent order, with its float32 arithmetic in lists, in their order."""
    group: list[Instruction] = []
    read: set[str] = set()
    written: set[str] = set()
    for item in body:
        reads, writes = reads_and_writes(item)
        if item.guard is None and item.opcode in _COLLECTED:
            group.append(item)
            read.update(reads)
            written.update(writes)
            continue
        independent = written.isdisjoint(reads) and written.isdisjoint(writes) and read.isdisjoint(writes)
        if group and not independent:
            yield group
            group, read, written = [], set(), set()
        yield item
    if group:
        yield group


def fused_step(coder: Coder, group: list[Instruction], wanted: Collection[str]) -> list[Step]:
    """Decode a run of float32 arithmetic, to one step if that pays.

    `wanted` are the registers that other instructions may read.
    """
    if len(group) < _FEWEST:
        return [_alone(coder, item) for item in group]
    from gpuprof.executor.arithmetic.native import player

    machine, tape, reads = player(), Tape(), list[tuple[Operand, Instruction]]()
    values: dict[Operand, int] = {}

    def value_of(operand: Operand, item: Instruction) -> int:
        if operand not in values:
            values[operand] = tape.source()
            reads.append((operand, item))
        return values[operand]

    last: dict[Reg, Instruction] = {}
    for item in group:
        target, *sources = item.operands
        operands = [value_of(operand, item) for operand in sources]
        operation = _COLLECTED[item.opcode]
        values[target] = tape.compute(operation, operands) if operation else operands[0]
        if isinstance(target, Reg):
            last[target] = item
    slots, writes = [], []
    for target, item in last.items():
        if target.name in wanted or target.name in coder.passing:
            tape.target(values[target])
            writes.append(coder.target(target, item))
            slots.append(coder.slots.register(target.name, item.line))
    if not writes:
        return []
    compiled, read = tape.compiled(), _reader(coder, reads)
    as_kept = all(coder.slots.kept[slot] == _F32 for slot in slots)

    def step(batch: Batch) -> None:
        results = compiled.play(machine, read(batch))
        registers, mask = batch.registers, batch.mask
        if batch.alone and as_kept:
            for slot, result in zip(slots, results, strict=True):
                registers[slot] = result
            return
        for write, result in zip(writes, results, strict=True):
            write(batch, result, mask)

    return [step]


def _alone(coder: Coder, item: Instruction) -> Step:
    """Decode an instruction of a run to a step of its own."""
    return (arithmetic if _COLLECTED[item.opcode] else move)(coder, item)


def _reader(
    coder: Coder, operands: Sequence[tuple[Operand, Instruction]]
) -> Callable[[Batch], Sequence[Lanes]]:
    """Return what reads all operands as floats: at once, where they are kept as such."""
    slots = [coder.slots.source(operand, _F32, item.line) for operand, item in operands]
    if len(slots) > 1 and all(coder.slots.kept[slot] == _F32 for slot in slots):
        pick: Callable[[list[Lanes]], Any] = itemgetter(*slots)
        return lambda batch: pick(batch.registers)
    reads = [coder.reader(operand, _F32, item) for operand, item in operands]
    return lambda batch: [read(batch) for read in reads]


def read_outside(group: list[Instruction], counts: Mapping[str, int]) -> set[str]:
    """Return the registers that instructions of the same basic block read that are not of the group.

    `counts` says how many instructions of the basic block read each register.
    """
    inside: dict[str, int] = {}
    for item in group:
        for name in set(reads_and_writes(item)[0]):
            inside[name] = inside.get(name, 0) + 1
    written = {name for item in group for name in reads_and_writes(item)[1]}
    return {name for name in written if counts.get(name, 0) > inside.get(name, 0)}
