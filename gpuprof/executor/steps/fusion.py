# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Run the float32 arithmetic of a basic block together, as one call into machine code.

A register-tiled kernel updates 64 accumulators of few lanes each, many times; NumPy's cost per call would
then be many times that of the arithmetic. Within a basic block, sums and products are collected, and whatever
does not depend on them moves ahead.
"""

from collections.abc import Callable, Collection, Iterator, Mapping

from gpuprof.executor.arithmetic.float_runs import Tape, player
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes
from gpuprof.executor.program.flow import reads_and_writes
from gpuprof.executor.program.ptx import Instruction, Operand, Reg
from gpuprof.executor.steps.arithmetic_steps import arithmetic
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.coding import Coder, Step
from gpuprof.executor.steps.move_steps import move

#: What is collected, and what a tape calls it; a move only gives a value another name.
_COLLECTED: dict[tuple[str, ...], str] = {
    ("fma", "rn", "f32"): "fma",
    ("fms", "rn", "f32"): "fms",
    ("fnma", "rn", "f32"): "fnma",
    ("fnms", "rn", "f32"): "fnms",
    ("mul", "f32"): "mul",
    ("mul", "rn", "f32"): "mul",
    ("add", "f32"): "add",
    ("add", "rn", "f32"): "add",
    ("sub", "f32"): "sub",
    ("sub", "rn", "f32"): "sub",
    ("mov", "f32"): "",
}
#: Below this a call of its own for each is as cheap.
_FEWEST = 3
_F32 = ARITHMETIC["f32"]


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
        if group and not (
            written.isdisjoint(reads) and written.isdisjoint(writes) and read.isdisjoint(writes)
        ):
            yield group
            group, read, written = [], set(), set()
        yield item
    if group:
        yield group


def fused_step(coder: Coder, group: list[Instruction], wanted: Collection[str]) -> list[Step]:
    """Decode a run of float32 arithmetic, to one step if that pays.

    Args:
        coder: Decodes operands.
        group: The instructions, in their order.
        wanted: Registers that other instructions may read.
    """
    machine = player()
    if machine is None or len(group) < _FEWEST:
        return [(arithmetic if _COLLECTED[item.opcode] else move)(coder, item) for item in group]
    tape, reads = Tape(), list[Callable[[Batch], Lanes]]()
    values: dict[Operand, int] = {}

    def value_of(operand: Operand, item: Instruction) -> int:
        if operand not in values:
            values[operand] = tape.source()
            reads.append(coder.reader(operand, _F32, item))
        return values[operand]

    last: dict[str, Instruction] = {}
    for item in group:
        target, *sources = item.operands
        operands = [value_of(operand, item) for operand in sources]
        operation = _COLLECTED[item.opcode]
        values[target] = tape.compute(operation, operands) if operation else operands[0]
        if isinstance(target, Reg):
            last[target.name] = item
    slots, writes = [], []
    for name, item in last.items():
        if name in wanted or name in coder.passing:
            tape.target(values[item.operands[0]])
            writes.append(coder.target(item.operands[0], item))
            slots.append(coder.slots.register(name, item.line))
    if not writes:
        return []
    compiled = tape.compiled()
    as_kept = all(coder.slots.kept[slot] == _F32 for slot in slots)

    def step(batch: Batch) -> None:
        results = compiled.play(machine, [read(batch) for read in reads])
        registers, mask = batch.registers, batch.mask
        if batch.alone and as_kept:
            for slot, result in zip(slots, results, strict=True):
                registers[slot] = result
            return
        for write, result in zip(writes, results, strict=True):
            write(batch, result, mask)

    return [step]


def read_outside(group: list[Instruction], counts: Mapping[str, int]) -> set[str]:
    """Return the registers that instructions of the same basic block read that are not of the group.

    Args:
        group: The group.
        counts: How many instructions of the basic block read each register.
    """
    inside: dict[str, int] = {}
    for item in group:
        for name in set(reads_and_writes(item)[0]):
            inside[name] = inside.get(name, 0) + 1
    written = {name for item in group for name in reads_and_writes(item)[1]}
    return {name for name in written if counts.get(name, 0) > inside.get(name, 0)}
