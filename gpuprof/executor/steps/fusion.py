# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Run the float32 arithmetic of a basic block together, as one call into machine code.

A register-tiled kernel updates 64 accumulators of few lanes each, many times; NumPy's cost per call would
then be many times that of the arithmetic. Within a basic block, sums and products are collected, with the
loads from shared memory that feed them. Whatever does not depend on these moves ahead; past loads nothing
moves but what computes with registers.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.arithmetic.float_runs import OPERATIONS, Tape
from gpuprof.executor.arithmetic.instruction_table import TABLE
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes
from gpuprof.executor.memory.global_accesses import MemoryRequest
from gpuprof.executor.memory.shared_memory import SharedPattern
from gpuprof.executor.program.flow import reads_and_writes
from gpuprof.executor.program.ptx import Instruction, Mem, Operand, Reg, Sym
from gpuprof.executor.steps.arithmetic_steps import arithmetic, move
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.coding import Coder, Step
from gpuprof.executor.steps.memory_steps import load, parts_of
from gpuprof.executor.steps.spaces import SharedSpace

_WORD_BYTES = 4


def loads_floats(item: Instruction) -> bool:
    """Tell whether an instruction loads floats, or vectors of them, from shared memory to registers."""
    if item.guard is not None or item.opcode[:2] != ("ld", "shared") or item.opcode[-1] != "f32":
        return False
    if item.opcode[2:-1] not in ((), ("v2",), ("v4",)) or not isinstance(item.operands[1], Mem):
        return False
    return all(isinstance(part, Reg) for part in parts_of(item.operands[0]))


class SharedLoads:
    """The loads of one run.

    Attributes:
        displacements: For each load the number of its address operand, and bytes from there, within the
            kernel's own shared memory.
    """

    def __init__(self, coder: Coder, items: Sequence[Instruction]) -> None:
        slots: dict[Operand, int] = {}
        self._spaces: list[SharedSpace] = []
        self.displacements: list[tuple[int, int]] = []
        for item in items:
            memory = item.operands[1]
            assert isinstance(memory, Mem)
            # Loads from one variable have one operand, and displacements of their own.
            base, offset = memory.base, memory.offset - coder.shared_start
            if isinstance(base, Sym):
                base, offset = replace(base, offset=0), offset + base.offset
            if base not in slots:
                slots[base] = coder.slots.source(base, ARITHMETIC["s64"], item.line)
            size = _WORD_BYTES * len(parts_of(item.operands[0]))
            coder.shared_granule = min(coder.shared_granule, size)
            site = coder.site("shared_load", item)
            self._spaces.append(SharedSpace(MemoryRequest(site, item.line, size, offset)))
            self.displacements.append((list(slots).index(base), offset))
        self._slots = list(slots.values())

    @property
    def operands(self) -> int:
        """How many different address operands there are."""
        return len(self._slots)

    def count(self, batch: Batch) -> None:
        """Make the loads where nobody wants what they bring."""
        self.make(batch)

    def make(self, batch: Batch) -> list[NDArray[np.int64]]:
        """Check, count and log the loads of the lanes that run; return the addresses to load from.

        Idle lanes have the address of one that runs.
        """
        operands, mask = [batch.registers[slot] for slot in self._slots], batch.mask
        # Of loads from one operand the first says where it points, in a cluster to the memory of which block.
        places: dict[int, NDArray[np.int64]] = {}
        for space, (number, displacement) in zip(self._spaces, self.displacements, strict=True):
            pattern = space.examine(batch, operands[number], mask)
            if number not in places:
                places[number] = _valid(pattern, displacement)
        return [places[number] for number in range(len(operands))]


def _valid(pattern: SharedPattern, displacement: int) -> NDArray[np.int64]:
    """Return what a pattern lies at a displacement from: addresses that every lane can read."""
    address = np.ascontiguousarray(pattern.address) - displacement
    return address if pattern.used is None else np.where(pattern.used, address, address[pattern.used][0])


#: What is collected, and what a tape calls it; a move only gives a value another name.
_COLLECTED: dict[tuple[str, ...], str] = {("mov", "f32"): ""}
_COLLECTED |= {(name, *rounded, "f32"): name for name in OPERATIONS for rounded in ((), ("rn",))}
#: Below this a call of its own for each is as cheap.
_FEWEST = 3
_F32 = ARITHMETIC["f32"]
#: What does nothing but compute its targets of registers.
PURE = frozenset({*TABLE, "mov", "cvta", "isspacep"})


def gathered(body: list[Instruction]) -> Iterator[Instruction | list[Instruction]]:
    """Yield a basic block in an equivalent order, with its float32 arithmetic in lists, in their order.

    Loads from shared memory are in these lists too, where machine code can make them.
    """
    group: list[Instruction] = []
    read: set[str] = set()
    written: set[str] = set()
    stays = False
    for item in body:
        reads, writes = reads_and_writes(item)
        is_load = loads_floats(item)
        if is_load or (item.guard is None and item.opcode in _COLLECTED):
            group.append(item)
            read.update(reads)
            written.update(writes)
            stays |= is_load
            continue
        independent = written.isdisjoint(reads) and written.isdisjoint(writes) and read.isdisjoint(writes)
        if group and not (independent and (not stays or item.opcode[0] in PURE)):
            yield group
            group, read, written, stays = [], set(), set(), False
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

    loads = SharedLoads(coder, [item for item in group if item.opcode[0] == "ld"])
    places = [tape.place() for _ in range(loads.operands)]
    displacements = iter(loads.displacements)
    last: dict[Reg, Instruction] = {}
    for item in group:
        if item.opcode[0] == "ld":
            number, displacement = next(displacements)
            made = parts_of(item.operands[0])
            values |= {
                target: tape.shared(places[number], displacement + _WORD_BYTES * part)
                for part, target in enumerate(made)
            }
        else:
            made, sources = item.operands[:1], item.operands[1:]
            operands = [value_of(operand, item) for operand in sources]
            operation = _COLLECTED[item.opcode]
            values[made[0]] = tape.compute(operation, operands) if operation else operands[0]
        last.update((target, item) for target in made if isinstance(target, Reg))
    slots, writes = [], []
    for target, item in last.items():
        if target.name in wanted or target.name in coder.passing:
            tape.target(values[target])
            writes.append(coder.target(target, item))
            slots.append(coder.slots.register(target.name, item.line))
    if not writes:
        return [loads.count] if places else []
    compiled, read = tape.compiled(), _reader(coder, reads)
    as_kept = all(coder.slots.kept[slot] == _F32 for slot in slots)

    def step(batch: Batch) -> None:
        results = compiled.play(machine, read(batch), loads.make(batch), batch.shared.content)
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
    if item.opcode[0] == "ld":
        return load(coder, item)
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
