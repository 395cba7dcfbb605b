# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The loads from shared memory of a run of float32 arithmetic: counted and logged together.

What a load costs and touches follows from its addresses and its lanes. A loop repeats these from pass to
pass, so all loads of a run are examined one by one only where they were not made with these addresses before.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import Mask
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes
from gpuprof.executor.memory.accesses import Access, Entry
from gpuprof.executor.memory.remembered import Remembered
from gpuprof.executor.memory.shared_memory import SharedPattern
from gpuprof.executor.program.ptx import Instruction, Mem, Operand, Reg, Sym
from gpuprof.executor.steps.batch import Batch, RepeatedLoads
from gpuprof.executor.steps.coding import Coder
from gpuprof.executor.steps.memory_steps import parts_of
from gpuprof.executor.steps.spaces import MemoryRequest, SharedSpace

_F32 = ARITHMETIC["f32"]
_WORD_BYTES = 4
#: Elements of address operands that the loads of a run remember, and how often they may differ.
_REMEMBERED_ELEMENTS = 1 << 18
_REMEMBERED_TIMES = 64


def loads_floats(item: Instruction) -> bool:
    """Tell whether an instruction loads floats, or vectors of them, from shared memory to registers."""
    if item.guard is not None or item.opcode[:2] != ("ld", "shared") or item.opcode[-1] != "f32":
        return False
    if item.opcode[2:-1] not in ((), ("v2",), ("v4",)) or not isinstance(item.operands[1], Mem):
        return False
    return all(isinstance(part, Reg) for part in parts_of(item.operands[0]))


@dataclass(frozen=True)
class _Made:
    """The loads of a run, made at given addresses by given lanes.

    In `places`, idle lanes have the address of one that runs.
    """

    places: list[NDArray[np.int64]]
    repeated: RepeatedLoads
    entries: list[Entry]


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
                slots[base] = coder.slots.source(base, ARITHMETIC["s64"], item.line).slot
            size = _WORD_BYTES * len(parts_of(item.operands[0]))
            coder.shared_granule = min(coder.shared_granule, size)
            site = coder.site("shared_load", item)
            self._spaces.append(SharedSpace(MemoryRequest(site, item.line, size, offset)))
            self.displacements.append((list(slots).index(base), offset))
        self._slots = list(slots.values())
        self._first_site = len(coder.sites) - len(items)

    @property
    def operands(self) -> int:
        """How many different address operands there are."""
        return len(self._slots)

    def count(self, batch: Batch) -> None:
        """Make the loads where nobody wants what they bring."""
        self.make(batch)

    def make(self, batch: Batch) -> list[NDArray[np.int64]]:
        """Check, count and log the loads of the lanes that run; return the addresses to load from."""
        operands, mask = [batch.registers[slot] for slot in self._slots], batch.mask
        known = batch.memo.shared_loads.get(self)
        if known is None:
            known = batch.memo.shared_loads[self] = Remembered(_REMEMBERED_TIMES, _REMEMBERED_ELEMENTS)
        made = known.find(operands, mask) if not batch.events.shared_is_told else None
        if made is None:
            patterns = [
                space.examine(batch, operands[number], mask)
                for space, (number, _) in zip(self._spaces, self.displacements, strict=True)
            ]
            made = self._made(operands, mask, patterns)
            known.add(operands, mask, made)
        else:
            if not made.repeated.times:
                batch.memo.repeated.append(made.repeated)
            made.repeated.times += 1
            batch.events.touch_all(made.entries)
        return made.places

    def _made(self, operands: Sequence[Lanes], mask: Mask, patterns: list[SharedPattern]) -> _Made:
        counts = [
            {"requests": mask.warp_count, "wavefronts": p.wavefronts, "bank_conflicts": p.conflicts}
            for p in patterns
        ]
        entries = [
            Entry(Access.READ, pattern, space.request.line)
            for pattern, space in zip(patterns, self._spaces, strict=True)
        ]
        # Of loads from one operand the first says where it points, in a cluster to the memory of which block.
        first = {
            number: (pattern, displacement)
            for pattern, (number, displacement) in reversed(
                list(zip(patterns, self.displacements, strict=True))
            )
        }
        places = [_valid(*first[number]) for number in range(len(operands))]
        return _Made(places, RepeatedLoads(self._first_site, counts), entries)


def _valid(pattern: SharedPattern, displacement: int) -> NDArray[np.int64]:
    """Return what a pattern lies at a displacement from: addresses that every lane can read."""
    address = np.ascontiguousarray(pattern.address) - displacement
    return address if pattern.used is None else np.where(pattern.used, address, address[pattern.used][0])
