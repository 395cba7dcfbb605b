# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""One SM that plays the machine code of its resident warps, instruction by instruction.

Four schedulers issue one instruction a cycle: of the warp that issued last, if it can, else of the oldest one
that can. What control words say is obeyed: stall cycles and dependence barriers. Pipes take an instruction
every so many cycles, and each of the two register banks gives an operand a cycle. The data path of shared
memory and L1, and the ways to L2 and DRAM, are servers with a rate, and an answer comes a latency later: when
is known at once, so nothing has to be kept for later but the times. A block's room is free again when L2 has
acknowledged its stores.
"""

from bisect import insort
from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import count
from math import ceil, floor, log1p
from operator import attrgetter
from random import Random

from gpuprof.sm_model.played_blocks import Played
from gpuprof.sm_model.resident import ResidentBlock, ResidentWarp
from gpuprof.sm_model.sm_surroundings import SmSurroundings
from gpuprof.sm_model.step import PRODUCTS, REASONS, Step, StepKind
from gpuprof.sm_model.tiles import BroughtTiles
from gpuprof.sm_model.traffic import MOST_L2_BYTES, SECTOR_BYTES

SCHEDULERS = 4
_PIPES = 16
_NEVER = float("inf")
#: Cycles until the operands of a memory instruction are read, once the data path takes it: not measured;
#: 2 to 20 of them change none of six GEMMs by more than 2 %.
_READ_CYCLES = 8.0
#: Cycles until a bulk copy is taken: a warp's lanes that begin one each take turns of 51.25 (H200), of which
#: instructions, the branch between them and reading operands are 48.
_COPY_CYCLES = 3.25
#: Of each pass but the first, the cycles that an answer comes later.
_PASS_LATENCY = 2
#: Cycles that a branch takes beyond its control word where it is taken: loops around 16 LOP3 and 64 FFMA do.
_TAKEN = 5
_ISSUE, _DEPENDENCY, _LATENCY, _BANDWIDTH, _AT_BARRIER = range(len(REASONS))
#: Answers of DRAM come for whole requests: one is due when the shares of those before it make one up.
_NEARLY_ONE = 0.999
_ROUNDING = 1e-6
#: Lines of stores that an SM combines: all words that a warp stores to so many, and none of twice as many.
_STORED_LINES = 16
#: What is done for a tile: parts of it begin to be copied, it is brought, or was used.
_COPIED, _BROUGHT, _USED = range(3)
#: Who waits for more cycles is not asked whether it is ready before.
_AWAKE = 4
_ISSUED = attrgetter("issued")
#: The kinds: to look up a member of an Enum takes longer, before Python 3.12, than to issue an instruction.
_PLAIN, _LATE, _SHARED, _LOAD, _STORE, _COPY, _GROUP, _UNTIL, _PRODUCT, *_KINDS = StepKind
_BULK, _BULK_STORE, _PHASE, _ARRIVAL, _FENCE, _BARRIER, _END = _KINDS


_NOBODY = ResidentWarp(ResidentBlock(), 0, _NEVER, 0.0, 0.0, Step(_PLAIN), iter(()), (), 0)


class StreamingMultiprocessor:
    """Plays blocks, once.

    Args:
        steps: The instructions of each block of machine code.
        paths: Of a block's warps through blocks of machine code: as many warps go each.
        warps: Of a block of threads.
        resident: Such blocks at once.
        rates: Of what surrounds it.
        tiles: Who brings the others what they wait for.
    """

    def __init__(
        self,
        steps: Sequence[Sequence[Step]],
        paths: Sequence[Sequence[int]],
        warps: int,
        resident: int,
        rates: SmSurroundings,
        tiles: BroughtTiles | None = None,
    ) -> None:
        self._steps, self._paths, self._warps = steps, paths, warps
        self._roles = [number * len(paths) // warps for number in range(warps)]
        self._tiles = tiles
        brings = [tiles.brings[role] for role in self._roles] if tiles else []
        #: How many of a block begin a copy, bring a tile, and make room for one.
        self._sides = {_COPIED: 1, _BROUGHT: brings.count(True), _USED: brings.count(False)}
        self._resident, self._rates = resident, rates
        #: The warps of each scheduler: the one that issued last, if it may go on, then all by when they did,
        #: but those that wait, by when they will be ready.
        self._held = [[_NOBODY] for _ in range(SCHEDULERS)]
        self._asleep = [[(_NEVER, 0, _NOBODY)] for _ in range(SCHEDULERS)]
        self._turn = count()
        self._blocks: list[ResidentBlock] = []
        self._time = [_NEVER] * SCHEDULERS
        self._pipes = [[0.0] * _PIPES for _ in range(SCHEDULERS)]
        #: When each register bank of a scheduler has given what it was asked for.
        self._banks = [[0.0, 0.0] for _ in range(SCHEDULERS)]
        #: When each server is free again.
        self._data = self._l2 = self._dram = self._barrier = self._crowd = 0.0
        self._due = self._owed = self._served = 0.0
        #: When answers to loads come that are not in L1 yet, and how long each keeps the data path.
        self._coming = [(_NEVER, 0.0)]
        self._random = Random(0).random
        #: Lines of stores that wait to be sent: who stored to them, and how many; and who ever did.
        self._stored: dict[tuple[float, ...], float] = {}
        self._places: set[int] = set()
        self._next_start = 0.0
        self._left = self._launched = 0
        self._played = Played()

    def play(self, blocks: int) -> Played:
        """Play so many blocks, as many at once as are resident."""
        self._left = blocks
        for _ in range(min(blocks, self._resident)):
            self._launch(0.0, 0.0)
        while True:
            self._issue()
            # What a path leaves out nobody begins.
            resumed = [self._let_go(block) for block in self._blocks]
            if not any(resumed):
                return self._played

    def _launch(self, now: float, start: float) -> None:
        self._left -= 1
        start = max(start, self._next_start)
        block, each = ResidentBlock(), self._rates.warp_cycles
        self._blocks.append(block)
        self._next_start = start + max(self._rates.block_cycles, self._warps * each)
        for number in range(self._warps):
            begins = start + number * each
            unit = self._launched % SCHEDULERS
            self._launched += 1
            role = self._roles[number]
            path = self._paths[role]
            steps = iter(self._steps[path[0]])
            self._go_on(
                ResidentWarp(block, unit, begins, now, begins, next(steps), steps, path, role, number=number)
            )

    def _go_on(self, warp: ResidentWarp) -> None:
        """Let a warp that its scheduler does not ask be asked once it is ready."""
        unit, ready = warp.unit, warp.ready
        heappush(self._asleep[unit], (ready, next(self._turn), warp))
        if ready < self._time[unit]:
            self._time[unit] = ready

    def _issue(self) -> None:
        """Issue instructions until no scheduler has a warp that will be ready."""
        times, turn = self._time, self._turn
        units = [*zip(self._held, self._pipes, self._banks, self._asleep, strict=True)]
        while True:
            unit, (now, second, third, fourth) = 0, times
            if second < now:
                unit, now = 1, second
            if third < now:
                unit, now = 2, third
            if fourth < now:
                unit, now = 3, fourth
            if now == _NEVER:
                return
            held, pipes, banks, asleep = units[unit]
            while asleep[0][0] <= now:
                warp = heappop(asleep)[2]
                if len(held) > 1 and held[1].issued <= warp.issued:
                    insort(held, warp, 2, key=_ISSUED)
                else:
                    held.insert(1, warp)
            (even, odd), soonest = banks, asleep[0][0]
            for warp in held:
                when = warp.ready
                if when <= now:
                    step = warp.step
                    when = pipes[step.pipe]
                    # One operand may come a cycle late, more may not.
                    if even > now and step.even and when < (free := even - (step.even == 1)):
                        when = free
                    if odd > now and step.odd and when < (free := odd - (step.odd == 1)):
                        when = free
                    if when <= now:
                        break
                if when < soonest:
                    soonest = when
            else:
                times[unit], held[0] = soonest, _NOBODY
                continue
            if warp is not held[0]:
                held.remove(warp)
                held.append(warp)
                held[0] = warp
            times[unit] = now + 1
            pipes[step.pipe] = now + step.cycles
            if step.even:
                banks[0] = (now if now > even else even) + step.even
            if step.odd:
                banks[1] = (now if now > odd else odd) + step.odd
            step.spent[_ISSUE] += now - warp.ready
            warp.issued, warp.ready = now, now + step.stall
            if step.kind:  # as few have
                self._do(warp, step, now)
            elif (after := next(warp.rest, None)) is None or after.held:
                self._advance(warp, step, after)
            else:
                warp.step = after
                continue
            if warp.ready > now + _AWAKE and warp is held[0]:
                held[0] = _NOBODY
                held.remove(warp)
                if warp.ready < _NEVER:
                    heappush(asleep, (warp.ready, next(turn), warp))
                if len(held) == 1 and asleep[0][0] > now + 1:
                    times[unit] = asleep[0][0]

    def _do(self, warp: ResidentWarp, step: Step, now: float) -> None:
        """Find out when the result of an instruction comes that was issued, and go on."""
        done, queued, taken, kind, far = now + step.latency, 0.0, now, step.kind, False
        if kind is _SHARED or kind is _LOAD or kind is _STORE or kind is _COPY:
            coming = self._coming
            while coming[0][0] <= now:  # what L2 answered has gone by the data path into L1
                came, cycles = heappop(coming)
                self._data = (self._data if self._data > came else came) + cycles
            start = self._data if self._data > now else now
            passes = step.asked.passes
            self._data = taken = start + passes
            last = start + _PASS_LATENCY * (passes - 1) if passes > 1 else start
            done = last + step.latency
            if kind is _STORE:
                acknowledged = self._store(warp, step, start)
                if step.crowded and acknowledged > done:
                    done, queued = acknowledged, acknowledged - done
            elif kind is not _SHARED:
                done, queued = self._cached(warp, step, last)
                queued += start - now
                far = True
                if kind is _COPY:
                    warp.copies = max(warp.copies, (done, queued))
        elif kind is _GROUP:
            (done, queued), far = warp.copies, True
        elif kind is _BULK_STORE:
            self._store(warp, step, now)
        elif kind is _BULK:
            self._begin_copy(warp.block, step, now)
            taken = now + _COPY_CYCLES
        elif kind is _PRODUCT:  # what it waits for is the end of others
            step.spent[_DEPENDENCY] += step.spent[_ISSUE]
            step.spent[_ISSUE] = 0.0
        elif kind is _ARRIVAL:
            if self._tiles and self._tiles.brings[warp.role]:
                warp.brought += 1
                came = max(now, warp.copies[0]) if step.outstanding else now
                self._hand(warp.block, (_BROUGHT, warp.brought), (came, 0.0))
        elif kind is not _LATE:
            self._meet(warp, step, now)
            return
        if (number := step.sets) is not None:
            warp.held[number].append((done, queued))
            warp.far[number] |= far
        if (number := step.frees) is not None:
            warp.held[number].append((taken + _READ_CYCLES, queued))
            warp.far[number] |= far
        if (after := next(warp.rest, None)) is None or after.held:
            self._advance(warp, step, after)
        else:
            warp.step = after

    def _meet(self, warp: ResidentWarp, step: Step, now: float) -> None:
        """Let a warp wait for others, or for all that it did; or end."""
        kind = step.kind
        if kind is _END:
            self._note(warp)
            self._end(warp, now)
            return
        self._advance(warp, step, next(warp.rest, None))
        if kind is _BARRIER:
            self._arrive(warp, step, now)
        elif kind is _PHASE:
            self._await(warp, now)
        elif kind is _FENCE:
            self._wait(warp, (max(now + step.latency, warp.block.end), 0.0), far=True)

    def _advance(self, warp: ResidentWarp, before: Step, step: Step | None) -> None:
        """Go on to the next instruction, and find out when it can be issued."""
        if step is None:
            self._note(warp)
            warp.entered = warp.ready
            warp.place += 1
            if warp.place == len(warp.path):
                self._end(warp, warp.ready)
                return
            number = warp.path[warp.place]
            if number != warp.path[warp.place - 1] + 1:
                warp.ready += _TAKEN
            warp.rest = iter(self._steps[number])
            step = next(warp.rest)
            step.spent[_DEPENDENCY] += before.stall - 1
        warp.step = step
        for number in step.waits:
            if held := warp.held[number]:
                self._wait(warp, max(held) if len(held) > 1 else held[0], far=warp.far[number])
                held.clear()
                warp.far[number] = False
        if step.kind is _UNTIL and step.sets is not None:
            held = sorted(warp.held[step.sets])
            done = held[: max(0, len(held) - step.outstanding)]
            warp.held[step.sets] = held[len(done) :]
            self._wait(warp, max(done, default=(0.0, 0.0)), far=step.sets != PRODUCTS)

    def _wait(self, warp: ResidentWarp, until: tuple[float, float], *, far: bool) -> None:
        """Let a warp wait for a result: what this stood in queues for is bandwidth."""
        when, queued = until
        if (cycles := when - warp.ready) > 0:
            spent = warp.step.spent
            queued = max(0.0, min(queued, cycles))  # below 0 where an answer came before the usual time
            spent[_BANDWIDTH] += queued
            spent[_LATENCY if far else _DEPENDENCY] += cycles - queued
            warp.ready = warp.resumed = when

    def _note(self, warp: ResidentWarp) -> None:
        spent = self._played.spent.setdefault((warp.path[warp.place], warp.role), [])
        spent.append((warp.place, warp.ready - warp.entered))

    def _cached(self, warp: ResidentWarp, step: Step, start: float) -> tuple[float, float]:
        """As `_load`, of what L1 may hold: misses come whole, and who shares one waits for who asked."""
        asked, hit = step.asked, start + self._rates.l1_latency
        if not asked.sectors:
            return hit, 0.0
        turn = number = warp.loads[id(step)] = warp.loads.get(id(step), -1) + 1
        sharers, missing = asked.sharers, asked.missing
        if missing < 1:
            phase = 0.0 if sharers > 1 else warp.number / self._warps
            turn = floor(number * missing + phase)
            if turn == floor((number - 1) * missing + phase):
                return hit, 0.0
        alone = 1 - asked.brought  # of those, what did not come with the one before
        late = alone == 1 or floor(turn * alone) != floor((turn - 1) * alone)
        if sharers == 1:
            return self._load(step, start, asked.sectors / missing, late=late)
        shared = warp.block.shared
        arrives, queued, come = shared.get((key := (id(step), number)), (0.0, 0.0, 0))
        if not come:
            arrives, queued = self._load(step, start, asked.sectors * sharers / missing, late=late)
        if come + 1 < sharers:
            shared[key] = arrives, queued, come + 1
        else:
            shared.pop(key, None)
        return hit if hit > arrives else arrives, max(0.0, min(queued, arrives - start))

    def _load(self, step: Step, start: float, sectors: float, *, late: bool = True) -> tuple[float, float]:
        """When a load's answer comes, and how long of that it stood in queues beyond the SM.

        Not `late` is what came before, beside what the block asked for then.
        """
        rates = self._rates
        each = max(step.effort * rates.l2_cycles, step.sent or SECTOR_BYTES / MOST_L2_BYTES)
        self._l2 = max(start, self._l2) + sectors * each
        done, queued = self._l2 + rates.l2_latency, self._l2 - start
        self._due += sectors * step.asked.late if late else 0.0
        self._owed += sectors * step.asked.distant * step.scattered * rates.dram_cycles
        if late and step.asked.late and self._due >= sectors * _NEARLY_ONE:
            self._due = max(0.0, self._due - sectors)
            self._dram = max(start, self._dram) + self._owed
            self._served, self._owed = self._served + self._owed, 0.0
            later, varies = rates.later(self._served / (start + rates.dram_latency))
            # Answers come after the least latency and a time of exponential distribution, a request's with
            # that of its last line.
            last = self._random() ** (1 / step.lines)
            later -= varies * (1 + log1p(-last) + step.led)
            if (arrives := self._dram + rates.dram_latency + later) > done:
                done, queued = arrives, self._dram + later - start
        if step.kind is _LOAD:  # a sector alone comes in a cycle, two of a line do
            each = max(step.asked.spread, SECTOR_BYTES / MOST_L2_BYTES)
            heappush(self._coming, (done, sectors * each))
        return done, queued

    def _store(self, warp: ResidentWarp, step: Step, start: float) -> float:
        """Return when L2 has acknowledged a store."""
        rates = self._rates
        cycles = rates.l2_write_cycles or rates.l2_cycles
        sectors = step.asked.sectors * self._sent(warp, step)
        self._data += sectors * step.sent
        self._l2 = max(start, self._l2) + sectors * step.effort * cycles
        if step.asked.distant:
            taken = step.asked.sectors * step.asked.distant * step.scattered * rates.dram_cycles
            self._dram = max(start, self._dram) + taken
            self._served += taken
        if step.crowded:
            self._crowd = max(start, self._crowd) + step.crowded * rates.crowd_cycles
        crowd = self._crowd if step.crowded else 0.0
        acknowledged = max(self._l2, self._dram, crowd) + rates.l2_latency
        warp.block.end = max(warp.block.end, acknowledged)
        return acknowledged

    def _sent(self, warp: ResidentWarp, step: Step) -> float:
        """Share of a store's sectors that are not combined with those of stores that are not sent yet.

        Stores of warps that go on at the same time, and of the warp itself, follow each other. Others come in
        any order: the lines of a block are among those that wait as often as is its share of all.
        """
        asked, waiting = step.asked, self._stored
        if not asked.again or not warp.stored:
            warp.stored = id(warp.block), id(step), warp.number // asked.writers, warp.resumed
        found = waiting.pop(warp.stored, 0.0)
        waiting[warp.stored] = step.lines
        while sum(waiting.values()) > _STORED_LINES:
            del waiting[next(iter(waiting))]
        if not found and asked.writers > 1:
            self._places.add(id(step))
            found = min(1.0, _STORED_LINES // step.lines / (len(self._blocks) * len(self._places)))
        return 1 - (1 - asked.own) * min(1.0, found)

    def _begin_copy(self, block: ResidentBlock, step: Step, now: float) -> None:
        arrives, queued = self._load(step, now, step.asked.sectors)
        block.copies += 1
        arrives += self._rates.bulk_latency - self._rates.l2_latency
        self._hand(block, (_COPIED, block.copies), (arrives, queued))

    def _await(self, warp: ResidentWarp, now: float) -> None:
        """Let a warp wait for the next tile; one that brings them, for room."""
        if (tiles := self._tiles) is None:
            return
        if tiles.brings[warp.role]:
            self._hope(warp, (_USED, warp.brought + 1 - tiles.ahead))
            return
        # Who waits for the next one has used the one before.
        self._hand(warp.block, (_USED, warp.taken), (now, 0.0))
        warp.taken += 1
        if tiles.copies:
            self._hope(warp, (_COPIED, ceil(tiles.copies * warp.taken - _ROUNDING)))
        else:
            self._hope(warp, (_BROUGHT, warp.taken))

    def _hope(self, warp: ResidentWarp, wanted: tuple[int, int]) -> None:
        """Let a warp wait until all have done something for so many tiles."""
        came, until = warp.block.handed.get(wanted, (0, (0.0, 0.0)))
        if came >= self._sides[wanted[0]]:
            self._wait(warp, until, far=wanted[0] != _USED)
        elif wanted[1] > 0:
            warp.resumes, warp.ready = warp.ready, _NEVER
            warp.block.hoping.append((wanted, warp))

    def _hand(self, block: ResidentBlock, what: tuple[int, int], until: tuple[float, float]) -> None:
        """Note that a warp has done something for a tile; those go on who wait for the last one that does."""
        came, latest = block.handed.get(what, (0, until))
        block.handed[what] = came + 1, max(latest, until)
        if came + 1 == self._sides[what[0]]:
            self._let_go(block, what)

    def _let_go(self, block: ResidentBlock, what: tuple[int, int] | None = None) -> bool:
        """Let those go on who hope for something, or all; return whether there were any."""
        going = [warp for wanted, warp in block.hoping if what in (None, wanted)]
        block.hoping = [each for each in block.hoping if what not in (None, each[0])]
        for warp in going:
            warp.ready = warp.resumes
            if what is not None:
                self._wait(warp, block.handed[what][1], far=what[0] != _USED)
            self._go_on(warp)
        return bool(going)

    def _arrive(self, warp: ResidentWarp, step: Step, now: float) -> None:
        """Let a warp wait at a barrier of its block."""
        block = warp.block
        self._barrier = max(now, self._barrier) + self._rates.barrier_cycles
        block.latest = max(block.latest, self._barrier)
        block.arrived.setdefault(step.sets or 0, []).append(warp)
        self._held[warp.unit][0] = _NOBODY
        self._held[warp.unit].remove(warp)
        warp.resumes, warp.ready = warp.ready, _NEVER
        self._release(block, step.sets or 0, step.outstanding)

    def _release(self, block: ResidentBlock, number: int, meeting: int = 0) -> None:
        arrived = block.arrived[number]
        # Fewer than meet there go on when nobody else is left to come.
        if len(arrived) < (meeting or self._warps) and len(arrived) + block.ended < self._warps:
            return
        for warp in arrived:
            warp.ready = warp.resumes
            if (cycles := block.latest + self._rates.release_cycles - warp.ready) > 0:
                warp.step.spent[_AT_BARRIER] += cycles
                warp.ready += cycles
                warp.resumed = warp.ready
            self._go_on(warp)
        block.arrived[number] = []

    def _end(self, warp: ResidentWarp, now: float) -> None:
        block = warp.block
        block.ended += 1
        block.end = max(block.end, now)
        self._held[warp.unit][0] = _NOBODY
        self._held[warp.unit].remove(warp)
        if block.ended < self._warps:
            for number, arrived in list(block.arrived.items()):
                if arrived:
                    self._release(block, number)
            return
        self._played.ends.append(block.end)
        self._played.drained.append(block.end - now)
        self._blocks.remove(block)
        if self._left:
            self._launch(now, block.end)
