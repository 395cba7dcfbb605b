# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""One SM that plays the machine code of its resident warps, instruction by instruction.

Four schedulers issue one instruction a cycle: of the warp that issued last, if it can, else of the oldest one
that can. What control words say is obeyed: stall cycles and dependence barriers. Pipes take an instruction
every so many cycles. The data path of shared memory and L1, and the ways to L2 and DRAM, are servers with a
rate, and an answer comes a latency later: when is known at once, so nothing has to be kept for later but the
times. A block's room is free again when L2 has acknowledged its stores.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

SCHEDULERS = 4
_DEPENDENCE_BARRIERS = 6
_PIPES = 16
_NEVER = float("inf")
#: Cycles until the operands of a memory instruction are read, once the data path takes it: not measured.
_READ_CYCLES = 8.0
#: Of each pass but the first, the cycles that an answer comes later.
_PASS_LATENCY = 2
#: Answers of DRAM come for whole requests: one is due when the shares of those before it make one up.
_NEARLY_ONE = 0.999


class StepKind(IntEnum):
    """What an instruction does beside taking an issue slot."""

    PLAIN = 0
    LATE = 1
    SHARED = 2
    LOAD = 3
    STORE = 4
    COPY = 5
    GROUP = 6
    UNTIL = 7
    BARRIER = 8
    END = 9


@dataclass(slots=True)
class Step:
    """One instruction as the SM plays it.

    Args:
        kind: What it does beside taking an issue slot.
        pipe: Which pipe of its scheduler it takes.
        cycles: And for how long.
        stall: Cycles before the warp's next one.
        waits: Dependence barriers that it waits for.
        sets: The barrier that its result frees.
        frees: The barrier that reading its operands frees.
        latency: From issue to result, of what comes late.
        passes: Through the data path of shared memory and L1.
        sectors: That L1 does not hold.
        distant: Share of these that L2 does not hold.
        effort: Of L2 for one of them, where 1 is that of a sector in a whole line.
        conflict: Cycles more because its operands stand in one register bank.
        outstanding: Of `StepKind.UNTIL`, how many results of the barrier that it names may still be missing.
    """

    kind: StepKind
    pipe: int = 0
    cycles: float = 0.0
    stall: float = 1
    waits: tuple[int, ...] = ()
    sets: int | None = None
    frees: int | None = None
    latency: float = 0.0
    passes: float = 0.0
    sectors: float = 0.0
    distant: float = 0.0
    effort: float = 1.0
    conflict: float = 0
    outstanding: int = 0


@dataclass(frozen=True, slots=True)
class SmSurroundings:
    """What surrounds the SM, in its cycles.

    Args:
        l1_latency: Of a load that hits in L1.
        l2_latency: The same of L2.
        dram_latency: The same of DRAM.
        l2_cycles: From one sector of L2 to the next.
        dram_cycles: The same of DRAM.
        barrier_cycles: From one warp that reaches a barrier to the next.
        l2_write_cycles: From one sector that L2 takes to the next; as `l2_cycles` if 0.
        release_cycles: From the last warp at a barrier to the first instruction behind it.
        block_cycles: From one block that starts to the next, at least.
        warp_cycles: From one warp of a block that starts to the next.
        gap_cycles: From the end of a block to the start of the one that takes its room.
    """

    l1_latency: float
    l2_latency: float
    dram_latency: float
    l2_cycles: float
    dram_cycles: float
    barrier_cycles: float
    l2_write_cycles: float = 0.0
    release_cycles: float = 15.0
    block_cycles: float = 0.0
    warp_cycles: float = 0.0
    gap_cycles: float = 0.0


@dataclass(slots=True)
class _Block:
    arrived: list["_Warp"] = field(default_factory=list)
    latest: float = 0.0
    ended: int = 0
    end: float = 0.0


@dataclass(slots=True, eq=False)
class _Warp:
    block: _Block
    unit: int
    ready: float
    entered: float
    place: int = 0
    index: int = 0
    #: Of each dependence barrier, when what holds it is done, and whether that is memory beyond the SM.
    held: list[list[float]] = field(default_factory=lambda: [[] for _ in range(_DEPENDENCE_BARRIERS)])
    far: list[bool] = field(default_factory=lambda: [False] * _DEPENDENCE_BARRIERS)
    copies: float = 0.0
    resumes: float = 0.0


@dataclass
class Played:
    """What came of it.

    Attributes:
        ends: When each block ended.
        spent: By block of machine code, the places on the path where warps passed it, and for how long.
        reasons: Cycles of all warps by what they waited for; `issue` is all else.
    """

    ends: list[float] = field(default_factory=list)
    spent: dict[int, list[tuple[int, float]]] = field(default_factory=dict)
    reasons: dict[str, float] = field(default_factory=lambda: defaultdict(float))


class StreamingMultiprocessor:
    """Plays blocks, once.

    Args:
        steps: The instructions of each block of machine code.
        path: Of every warp, through blocks of machine code.
        warps: Of a block of threads.
        resident: Such blocks at once.
        rates: Of what surrounds it.
    """

    def __init__(
        self,
        steps: Sequence[Sequence[Step]],
        path: Sequence[int],
        warps: int,
        resident: int,
        rates: SmSurroundings,
    ) -> None:
        self._steps, self._path, self._warps = steps, path, warps
        self._resident, self._rates = resident, rates
        self._held: list[list[_Warp]] = [[] for _ in range(SCHEDULERS)]
        self._last: list[_Warp | None] = [None] * SCHEDULERS
        self._time = [_NEVER] * SCHEDULERS
        self._pipes = [[0.0] * _PIPES for _ in range(SCHEDULERS)]
        #: When each server is free again.
        self._data = self._l2_read = self._l2_write = self._dram = self._barrier = 0.0
        self._due = 0.0
        self._next_start = 0.0
        self._left = self._launched = 0
        self._played = Played()

    def play(self, blocks: int) -> Played:
        """Play so many blocks, as many at once as are resident."""
        self._left = blocks
        for _ in range(min(blocks, self._resident)):
            self._launch(0.0)
        while (now := min(self._time)) < _NEVER:
            self._turn(self._time.index(now), now)
        waited = sum(self._played.reasons.values())
        lived = sum(cycles for spent in self._played.spent.values() for _, cycles in spent)
        self._played.reasons["issue"] = max(0.0, lived - waited)
        return self._played

    def _launch(self, now: float) -> None:
        self._left -= 1
        now = max(now, self._next_start)
        block, each = _Block(), self._rates.warp_cycles
        self._next_start = now + max(self._rates.block_cycles, self._warps * each)
        for number in range(self._warps):
            start = now + number * each
            unit = self._launched % SCHEDULERS
            self._launched += 1
            self._held[unit].append(_Warp(block, unit, start, start))
            self._time[unit] = min(self._time[unit], start)

    def _turn(self, unit: int, now: float) -> None:
        """Issue an instruction of a scheduler, or move on to when one can be issued."""
        pipes, steps, path = self._pipes[unit], self._steps, self._path
        soonest = _NEVER
        last = self._last[unit]
        found = None
        if last is not None and last.ready <= now and pipes[steps[path[last.place]][last.index].pipe] <= now:
            found = last
        else:
            for warp in self._held[unit]:
                when = warp.ready
                if when <= now:
                    when = pipes[steps[path[warp.place]][warp.index].pipe]
                    if when <= now:
                        found = warp
                        break
                if when < soonest:
                    soonest = when
        if found is not None:
            self._time[unit], self._last[unit] = now + 1, found
            self._issue(found, now)
            return
        self._time[unit], self._last[unit] = soonest, None

    def _issue(self, warp: _Warp, now: float) -> None:
        step, unit = self._steps[self._path[warp.place]][warp.index], warp.unit
        self._time[unit] += step.conflict
        self._pipes[unit][step.pipe] = now + step.cycles + step.conflict
        warp.ready = now + step.stall
        if step.kind == StepKind.END:
            self._note(warp)
            self._end(warp, now)
            return
        if StepKind.PLAIN < step.kind < StepKind.UNTIL:
            self._begin(warp, step, now)
        self._advance(warp)
        if step.kind == StepKind.BARRIER:
            self._arrive(warp, now)

    def _advance(self, warp: _Warp) -> None:
        """Go on to the next instruction, and find out when it can be issued."""
        warp.index += 1
        if warp.index == len(self._steps[self._path[warp.place]]):
            self._note(warp)
            warp.entered = warp.ready
            warp.place, warp.index = warp.place + 1, 0
            if warp.place == len(self._path):
                self._end(warp, warp.ready)
                return
        step = self._steps[self._path[warp.place]][warp.index]
        for number in step.waits:
            if held := warp.held[number]:
                self._wait(warp, max(held), "memory" if warp.far[number] else "dependency")
                held.clear()
                warp.far[number] = False
        if step.kind == StepKind.UNTIL and step.sets is not None:
            held = sorted(warp.held[step.sets])
            done = held[: max(0, len(held) - step.outstanding)]
            warp.held[step.sets] = held[len(done) :]
            self._wait(warp, max(done, default=0.0), "memory")

    def _wait(self, warp: _Warp, until: float, reason: str) -> None:
        if until > warp.ready:
            self._played.reasons[reason] += until - warp.ready
            warp.ready = until

    def _note(self, warp: _Warp) -> None:
        spent = self._played.spent.setdefault(self._path[warp.place], [])
        spent.append((warp.place, warp.ready - warp.entered))

    def _begin(self, warp: _Warp, step: Step, now: float) -> None:
        """Find out when the result of an instruction comes."""
        done = now + step.latency
        taken = now
        if step.kind == StepKind.GROUP:
            done = warp.copies
        elif step.kind != StepKind.LATE:
            start = max(now, self._data)
            self._data = taken = start + step.passes
            done = start + _PASS_LATENCY * max(0.0, step.passes - 1) + step.latency
            if step.kind == StepKind.STORE:
                self._store(warp, step, start)
            elif step.kind != StepKind.SHARED:
                done = self._load(step, start + _PASS_LATENCY * max(0.0, step.passes - 1))
        far = step.kind in (StepKind.LOAD, StepKind.COPY, StepKind.GROUP)
        if step.kind == StepKind.COPY:
            warp.copies = max(warp.copies, done)
        for number, when in ((step.sets, done), (step.frees, taken + _READ_CYCLES)):
            if number is not None:
                warp.held[number].append(when)
                warp.far[number] |= far

    def _load(self, step: Step, start: float) -> float:
        rates = self._rates
        if not step.sectors:
            return start + rates.l1_latency
        self._l2_read = max(start, self._l2_read) + step.sectors * step.effort * rates.l2_cycles
        done = self._l2_read + rates.l2_latency
        self._due += step.sectors * step.distant
        if step.distant and self._due >= step.sectors * _NEARLY_ONE:
            self._dram = max(start, self._dram) + self._due * rates.dram_cycles
            self._due = 0.0
            done = max(done, self._dram + rates.dram_latency)
        return done

    def _store(self, warp: _Warp, step: Step, start: float) -> None:
        rates = self._rates
        cycles = rates.l2_write_cycles or rates.l2_cycles
        self._l2_write = max(start, self._l2_write) + step.sectors * step.effort * cycles
        self._dram = max(start, self._dram) + step.sectors * step.distant * rates.dram_cycles
        acknowledged = max(self._l2_write, self._dram) + rates.l2_latency
        warp.block.end = max(warp.block.end, acknowledged)

    def _arrive(self, warp: _Warp, now: float) -> None:
        """Let a warp wait at its block's barrier."""
        block = warp.block
        self._barrier = max(now, self._barrier) + self._rates.barrier_cycles
        block.latest = max(block.latest, self._barrier)
        block.arrived.append(warp)
        warp.resumes, warp.ready = warp.ready, _NEVER
        self._release(block)

    def _release(self, block: _Block) -> None:
        if len(block.arrived) + block.ended < self._warps:
            return
        for warp in block.arrived:
            warp.ready = warp.resumes
            self._wait(warp, block.latest + self._rates.release_cycles, "barrier")
            self._time[warp.unit] = min(self._time[warp.unit], warp.ready)
        block.arrived = []

    def _end(self, warp: _Warp, now: float) -> None:
        block = warp.block
        block.ended += 1
        block.end = max(block.end, now)
        self._held[warp.unit].remove(warp)
        self._last[warp.unit] = None
        if block.ended < self._warps:
            self._release(block)
            return
        self._played.ends.append(block.end)
        if self._left:
            self._launch(block.end + self._rates.gap_cycles)
