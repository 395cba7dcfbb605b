# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What every warp waits for where nothing can go on: asked only then, so that it costs a run nothing before.

Whoever holds lanes says which, at which line, and what keeps one of them; here that is told for all warps,
those together that wait for the same.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from itertools import groupby, islice
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from gpuprof.executor.decode import Program, flow_of
from gpuprof.executor.faults import MemoryPlace, Wait
from gpuprof.executor.lanes.masks import Bools
from gpuprof.executor.memory.mbarriers import MBARRIER_BYTES, Stall
from gpuprof.executor.memory.windows import RANK_SHIFT, SHARED_WINDOW, WINDOW_BYTES
from gpuprof.executor.program.flow import BasicBlock, reads_and_writes
from gpuprof.executor.program.loops import loops_of, waiting_loops
from gpuprof.executor.program.origins import Origins, origins_in, origins_of
from gpuprof.executor.program.ptx import Instruction, Mem, Reg, Sym, address_of
from gpuprof.executor.program.source_places import call_line
from gpuprof.executor.steps.batch import Batch, existing_lanes

#: Block, warp and lane in a batch.
Position = tuple[int, int, int]
#: Blocks whose warps are looked at, what is told of them, and sets of lanes that are named in one.
_MOST_BLOCKS, _MOST_TOLD, _MOST_LINES, _MOST_LANES = 32, 8, 4, 2
_STORES = ("st", "atom", "red")


class Told(NamedTuple):
    """What is waited for; `{}` in it stands for the place."""

    what: str
    place: MemoryPlace | None = None


class HeldLanes(Struct, frozen=True):
    """Lanes that cannot go on, at a line of the source and of the PTX, and what keeps the one asked about."""

    lanes: Bools
    at: tuple[int, int]
    tell: Callable[[Position], Told]


class Hang:
    """One batch of which nothing can go on."""

    def __init__(self, program: Program, batch: Batch) -> None:
        self._program = program
        self._batch = batch

    def waits(self, held: Sequence[HeldLanes], first: int) -> tuple[Wait, ...]:
        """Tell of all warps, those of block `first` before others."""
        batch, live = self._batch, self._batch.spread(self._batch.live.lanes)
        there = batch.spread(existing_lanes(batch.geometry, batch.layout.blocks))
        blocks = [first, *(n for n in np.flatnonzero(live.any(axis=(1, 2))).tolist() if n != first)]
        told: dict[tuple[str, str], list[tuple[int, int, Bools]]] = {}
        places: dict[tuple[str, str], list[MemoryPlace]] = {}
        for block in blocks[:_MOST_BLOCKS]:
            rest = live[block].copy()
            for one in held:
                lanes = batch.spread(one.lanes)[block] & rest
                rest &= ~lanes
                for warp in np.flatnonzero(lanes.any(axis=1)).tolist():
                    what, place = one.tell((block, warp, int(lanes[warp].argmax())))
                    wait = (what, self._where(*one.at))
                    told.setdefault(wait, []).append((block, warp, lanes[warp]))
                    known = places.setdefault(wait, [])
                    known += [place] if place and place not in known else []
            for text, lanes in (
                ("wait for lanes of their warp that wait elsewhere", rest),
                ("have ended", there[block] & ~live[block]),
            ):
                for warp in np.flatnonzero(lanes.any(axis=1)).tolist():
                    told.setdefault((text, ""), []).append((block, warp, lanes[warp]))
        waits = []
        for (what, where), whose in told.items():
            place, *others = places.get((what, where)) or (None,)
            what = what.replace("{}", f"{{}} and {len(others)} more") if others else what
            waits.append(Wait(self._who(whose, there), where, what, place))
        more = len(waits) - _MOST_TOLD
        return (
            *waits[:_MOST_TOLD],
            *([Wait("others", "", f"wait for {more} things more")] if more > 0 else ()),
        )

    def _where(self, line: int, ptx_line: int) -> str:
        of = self._program.interface
        called = call_line(of.module, of.entry, ptx_line)
        return (
            f"line {line}, called in line {called}"
            if called not in (0, line)
            else f"line {line}" * bool(line)
        )

    def _who(self, whose: Sequence[tuple[int, int, Bools]], there: Bools) -> str:
        """Name warps, or lanes of a single one, of one block or of several."""
        layout = self._batch.layout
        by_lanes: dict[str, set[int]] = {}
        for block, warp, own in whose:
            some = [] if (own == there[block, warp]).all() else np.flatnonzero(own).tolist()
            text = f"lane{'s' * (len(some) > 1)} {ranges(some)} of " * bool(some)
            by_lanes.setdefault(text, set()).add(warp % layout.warps)
        if len(by_lanes) > _MOST_LANES:
            by_lanes = {"lanes of ": set().union(*by_lanes.values())}
        texts = [f"{some}warp{'s' * (len(at) > 1)} {ranges(sorted(at))}" for some, at in by_lanes.items()]
        blocks = {(block, warp // layout.warps) for block, warp, _ in whose}
        of = (
            f"{len(blocks)} blocks"
            if len(blocks) > 1
            else f"block {self._batch.names((*whose[0][:2], 0))[1]}"
        )
        return f"{' and '.join(texts)} of {of}"

    def stalled(self, stall: Stall, lanes: Bools) -> HeldLanes:
        """Lanes that wait for a phase of an mbarrier."""
        barriers, layout = self._batch.mbarriers, self._batch.layout

        def tell(position: Position) -> Told:
            block = position[0]
            column = int(self._batch.spread(stall.columns)[position])
            phase = int(barriers.phase[block, column])
            missing = barriers.describe(block, column) or "which is over"
            rank, start = divmod(barriers.offsets[column], layout.stride)
            arrived: list[str] = []
            before: list[str] = []
            for at, columns, mask, phases in barriers.arrivals:
                here = self._batch.spread((columns == column) & mask)
                for number, known in ((phase, arrived), (phase - 1, before)):
                    warps = np.flatnonzero((here & (phases == number))[block].any(axis=1)).tolist()
                    text = f"warp{'s' * (len(warps) > 1)} {ranges(warps)} in {self._where(*at)}"
                    if warps and text not in known:
                        known.append(text)
            who = f"; arrived: {', '.join(arrived[:_MOST_LINES])}" if arrived else "; nobody arrived"
            if before and not arrived:
                who += f", at the phase before: {', '.join(before[:_MOST_LINES])}"
            elif not arrived:
                who += self._would("arrive", self._lines(partial(self._arrives, start)))
            place = MemoryPlace(start, MBARRIER_BYTES, in_shared=True)
            of_rank = f" of rank {rank}" if layout.several else ""
            return Told(f"phase {phase} of the mbarrier {{}}{of_rank}: {missing}{who}", place)

        return HeldLanes(lanes, stall.at, tell)

    def _arrives(self, start: int, item: Instruction) -> bool:
        """Tell whether an instruction may arrive at the mbarrier at a byte of shared memory."""
        goal = address_of(item)
        if goal is None or item.opcode[0] != "mbarrier" or "arrive" not in item.opcode[1]:
            return False
        places = [
            (offset, name) for name, offset in self._program.own.shared.offsets.items() if offset <= start
        ]
        near = origins_in(goal, self._origins)
        return not near or max(places, default=(0, ""))[1] in dict(near)

    def turning(self, lanes: Bools, block: int) -> HeldLanes:
        """Lanes in a loop, at one of its basic blocks, that does not end."""
        inside = [one for ways in waiting_loops(self._flow).values() for one in ways if block in one.body]
        if not inside:
            return self._endless(lanes, block)
        loop = min(inside, key=lambda one: len(one.body))
        items = [item for number in sorted(loop.body) for item in self._flow[number].body]
        read = next(
            i for i in items if i.opcode[0] in ("ld", "atom") and not loop.tested.isdisjoint(_results(i))
        )
        address = address_of(read)
        assert address is not None
        near = origins_in(address, self._origins)

        def writes(item: Instruction) -> bool:
            goal = address_of(item)
            if goal is None or item.opcode[0] not in _STORES or item in items:
                return False
            return bool(near & origins_in(goal, self._origins))

        lines = self._lines(writes)

        def tell(position: Position) -> Told:
            place = self._place(read, address, position)
            value = self._held(next(name for name in _results(read) if name in loop.tested), position)
            where = "{}" if place else "memory"
            return Told(f"{where} to change, which holds {value}{self._would('write it', lines)}", place)

        return HeldLanes(lanes, (read.line, read.ptx_line), tell)

    def _endless(self, lanes: Bools, block: int) -> HeldLanes:
        loops = [one for one in loops_of(self._flow).values() if block in one.body]
        what = "its loop to end"
        if loops:
            body = min(loops, key=lambda one: len(one.body)).body
            if all(body.issuperset(self._flow[number].successors) for number in body):
                what += ", which nothing in it can do: what it tests is not read in it (volatile would be)"
        return HeldLanes(lanes, (self._program.blocks[block].line, 0), lambda _: Told(what))

    @cached_property
    def _flow(self) -> list[BasicBlock]:
        return flow_of(self._program)

    @cached_property
    def _origins(self) -> Origins:
        return origins_of(self._flow)

    def _lines(self, wanted: Callable[[Instruction], bool]) -> dict[str, int]:
        """Return the lines of some instructions, and how many threads here came to each."""
        lines: dict[str, int] = {}
        self._batch.tally.settle()
        for number, block in enumerate(self._flow):
            for item in filter(wanted, block.body):
                where, came = self._where(item.line, item.ptx_line), self._batch.tally.threads[number].sum()
                lines[where] = lines.get(where, 0) + int(came)
        return lines

    def _would(self, verb: str, lines: dict[str, int]) -> str:
        """Say who would do something, and whether any thread has come there."""
        if not lines:
            return f"; no line would {verb}"
        said = [
            f"{where} ({came or 'no'} thread{'s' * (came > 1)} came there)"
            for where, came in islice(sorted(lines.items(), key=lambda one: one[1] > 0), _MOST_LINES)
        ]
        return f"; to {verb}: {', '.join(said)}"

    def _held(self, name: str, position: Position) -> str:
        value = self._batch.registers[self._program.slots.register(name, 0)]
        return str(self._batch.spread(value)[position])

    def _place(self, item: Instruction, address: Mem, position: Position) -> MemoryPlace | None:
        """Return where a load reads, as registers are now."""
        own, base = self._program.own, address.base
        size = int("".join(filter(str.isdigit, item.opcode[-1])) or 8) // 8
        if isinstance(base, Sym):
            start = own.shared.offsets.get(base.name)
            offset = base.offset + address.offset
            return None if start is None else MemoryPlace(start + offset, size, in_shared=True)
        if not isinstance(base, Reg):
            return None
        value = int(self._held(base.name, position)) + address.offset
        if "shared" not in item.opcode:
            if not SHARED_WINDOW <= value < SHARED_WINDOW + WINDOW_BYTES:
                return MemoryPlace(value, size, in_shared=False)
            value -= SHARED_WINDOW
        return MemoryPlace(
            (value & (1 << RANK_SHIFT) - 1) - own.start + own.reserved_bytes, size, in_shared=True
        )


def _results(item: Instruction) -> list[str]:
    return reads_and_writes(item)[1]


def ranges(numbers: Iterable[int]) -> str:
    """Write numbers in order, those in a row as a range."""
    together = groupby(enumerate(numbers), key=lambda one: one[1] - one[0])
    runs = ([number for _, number in run] for _, run in together)
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)
