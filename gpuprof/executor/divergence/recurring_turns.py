# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Pass over turns of a loop that do what turns before did, in runs without values.

A pipelined loop goes round its stages: after so many turns, a *period*, its threads do the same again, with
registers that have moved on. Where that is proved of the whole batch, from its registers to its mbarriers,
for the periods to come, these are not run: what they count is what the last one counted, so many times.

Blocks have their own numbers of turns to come: each passes over as many as are proved of it. Where they wait
for each other meanwhile, all pass over as many as the one that has fewest.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.decode import Program, RunnableBlock
from gpuprof.executor.divergence.moves import Moves
from gpuprof.executor.divergence.strands import Strand
from gpuprof.executor.lanes.masks import Mask
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.executor.steps.batch import MOST_PERIODS, Batch
from gpuprof.executor.steps.coding import Step
from gpuprof.executor.steps.motions import Motion

#: Turns of a period at most.
_LONGEST = 64
#: Periods to go on as before where a proof shows that hardly any more are alike.
_REST = 4
#: Basic blocks that are remembered.
_LONGEST_PATH = 1 << 16
#: How often a loop's period may turn out to be another before it is left alone.
_TRIES = 4


@dataclass
class _Watch:
    """What is known of the turns that begin at one basic block.

    Attributes:
        body: The basic blocks of the loop.
        sums: What tells the latest turns apart, the last one last.
        place: Where the path was at the latest turn.
        mask: The lanes that made the latest turn.
        example: One of their blocks.
        period: Turns after which everything seems to be as before; 0 where that is not known.
        factor: The period is so many times what the turns look like.
        left: Turns to go until the next step.
        before: What registers held a period before the proof.
        proved: Whether its period has ever been proved.
        failures: Proofs that failed before.
    """

    body: frozenset[int]
    sums: list[int] = field(default_factory=list)
    place: int = 0
    mask: Mask | None = None
    example: int = 0
    period: int = 0
    factor: int = 1
    left: int = 0
    before: list[Lanes] | None = None
    proved: bool = False
    failures: int = 0


class Counted(Protocol):
    """What a scheduler counts by itself."""

    steps: int
    lane_instructions: int


class RecurringTurns:
    """The loops of one batch whose turns may be passed over.

    Args:
        program: What runs.
        batch: On whom.
    """

    def __init__(self, program: Program, batch: Batch) -> None:
        self._batch = batch
        self._lengths = np.array([block.length for block in program.blocks], dtype=np.int64)
        self._watches = {header: _Watch(body) for header, body in _loops(program).items()}
        self._path: list[int] = []
        self._proof: _Proof | None = None
        #: The loop whose turns are compared; None while all are looked at.
        self._focus: _Watch | None = None
        self._followed: dict[int, list[Step]] = {}

    def ran(self, block: int, mask: Mask) -> None:
        """The lanes in `mask` run a basic block."""
        self._path.append(block)
        proof = self._proof
        if proof is None:
            return
        if not proof.moves.limit.any():
            self._fail(proof.watch)
        elif (mask.lanes & ~proof.lanes).any():
            self._begin_again(proof.watch)

    def steps(self, block: RunnableBlock) -> list[Step]:
        """Return what is run of a skeleton's basic block: while something is proved, each step with that."""
        if self._proof is None:
            return block.skeleton
        if id(block) not in self._followed:
            pairs = zip(block.skeleton, block.motions, strict=True)
            self._followed[id(block)] = [self._with_proof(step, motion) for step, motion in pairs]
        return self._followed[id(block)]

    def _with_proof(self, step: Step, motion: Motion) -> Step:
        def run(batch: Batch) -> None:
            if self._proof is not None:
                self._proof.moves.follow(motion)
            step(batch)

        return run

    def ends(self, block: RunnableBlock) -> None:
        """The steps of a basic block have been run; what ends it comes."""
        if self._proof is not None:
            self._proof.moves.follow(block.ending)

    def meet(self) -> None:
        """Lanes wait, or rest; those of different blocks go on together."""
        if self._proof is not None:
            self._proof.together = True

    def forget(self) -> None:
        """Turns have values now, or begin in the middle."""
        if self._path:
            self._proof = None
            self._look_around()

    def come(self, strand: Strand, counted: Counted, others: Sequence[Strand], budget: int) -> bool:
        """A strand begins a basic block: where turns to come are proved, pass over them.

        Args:
            strand: The strand.
            counted: What the scheduler has counted; it is brought up to date.
            others: All other strands that have not ended.
            budget: Steps that may be taken.

        Returns:
            Whether any were passed over.
        """
        watch = self._watches.get(strand.block)
        if watch is None or watch.failures >= _TRIES:
            return False
        if self._focus is not None and self._focus is not watch:
            if strand.block in self._focus.body:
                return False
            self._leave(self._focus)  # that loop has ended, if only until the next turn of this one
        if not self._turn(watch, strand.mask):
            self._begin_again(watch)
            return False
        return self._go_on(watch, strand, counted, others, budget)

    def _turn(self, watch: _Watch, mask: Mask) -> bool:
        """Note a turn; False where lanes make it that did not make the one before."""
        path = self._path
        if len(path) > _LONGEST_PATH:
            self._proof = None
            self._look_around()
        more = watch.mask is None or (watch.mask is not mask and bool((mask.lanes & ~watch.mask.lanes).any()))
        watch.mask = mask
        going = np.broadcast_to(mask.lanes.any(axis=(1, 2)), (self._batch.blocks,))
        if more or not going[watch.example]:
            blocks = np.flatnonzero(going)
            watch.example = int(blocks[len(blocks) // 2])
        phases = self._batch.mbarriers.phase[watch.example] & 1 if self._batch.phased else np.zeros(1)
        found = hash((tuple(path[watch.place :]), phases.tobytes()))
        watch.place = len(path)
        if more:
            watch.left = 0
            return False
        watch.sums.append(found)
        if len(watch.sums) > 4 * _LONGEST:
            del watch.sums[: -2 * _LONGEST]
        return True

    def _begin_again(self, watch: _Watch) -> None:
        watch.sums.clear()
        watch.before = None
        if self._proof is not None and self._proof.watch is watch:
            self._proof = None

    def _go_on(
        self, watch: _Watch, strand: Strand, counted: Counted, others: Sequence[Strand], budget: int
    ) -> bool:
        if watch.left > 0:
            watch.left -= 1
            if watch.left:
                # What repeats while a period passes must go on to do so.
                if self._proof is not None and not _repeats(watch.sums, watch.period):
                    self._begin_again(watch)
                    watch.left = 0
                return False
        if not watch.period:
            watch.period = _period(watch.sums) * watch.factor
            if not watch.period or watch.period > _LONGEST:
                watch.period = 0
                return False
        if watch.before is None:
            self._focus = watch
            watch.before, watch.left = list(self._batch.registers), watch.period
            return False
        if self._proof is None:
            self._proof = _Proof(strand, watch, self._batch, counted, others)
            watch.left = watch.period
            return False
        proof, self._proof, watch.before = self._proof, None, None
        return self._ended(watch, proof, strand, counted, others, budget)

    def _ended(
        self,
        watch: _Watch,
        proof: "_Proof",
        strand: Strand,
        counted: Counted,
        others: Sequence[Strand],
        budget: int,
    ) -> bool:
        watch.sums.clear()
        moved = proof.confirmed(strand, others)
        inside = np.broadcast_to(proof.stayed(strand.mask), proof.moves.limit.shape)
        left = proof.moves.limit[inside]
        if moved is None:
            return False
        if not left.size or not left.max():
            self._fail(watch)
            return False
        watch.proved = True
        periods = np.where(inside, np.maximum(proof.moves.limit - 1, 0), 0)
        if proof.together:
            all_there = inside.sum() == proof.lanes.any(axis=(1, 2)).sum() * (len(inside) // len(proof.lanes))
            periods = np.minimum(periods, left.min() - 1 if all_there else 0)
        periods = np.clip(periods, 0, proof.most(self._batch, counted, budget))
        if periods.max() < 1:
            watch.left = _REST * watch.period
            return False
        proof.repeat(periods, moved, self._batch, counted, self._lengths)
        self._path.clear()
        for other in self._watches.values():
            other.sums.clear()
            other.place = 0
        return True

    def _fail(self, watch: _Watch) -> None:
        """No block does again what it did: if none ever has, the period may be a longer one."""
        if not watch.proved:
            watch.failures += 1
            watch.period, watch.factor = 0, 2 * watch.factor
        self._leave(watch)

    def _leave(self, watch: _Watch) -> None:
        """Compare the turns of other loops, too."""
        watch.sums.clear()
        watch.before, watch.left = None, 0
        self._proof = self._focus = None

    def _look_around(self) -> None:
        """Look at all loops again."""
        self._focus = None
        self._path.clear()
        for watch in self._watches.values():
            watch.sums.clear()
            watch.place, watch.before, watch.left, watch.mask = 0, None, 0, None


class _Proof:
    """A period that is run to prove what the next ones do."""

    def __init__(
        self, strand: Strand, watch: _Watch, batch: Batch, counted: Counted, others: Sequence[Strand]
    ) -> None:
        assert watch.before is not None
        self.watch = watch
        self.moves = Moves(batch, strand.mask, watch.before)
        self.lanes = strand.mask.lanes
        #: Whether blocks went on together from where they waited.
        self.together = False
        self._place = _place(strand, others)
        self._state = _State.of(batch)
        self._counts = _Counts(batch)
        self._steps = counted.steps

    def confirmed(self, strand: Strand, others: Sequence[Strand]) -> dict[int, NDArray[np.int64]] | None:
        """Return how far registers move in a period; None where the batch is not as it was before."""
        batch = self.moves._batch
        if _place(strand, others) != self._place:
            return None
        recurs = self._state.recurs(_State.of(batch))
        if recurs is None:
            return None
        self.moves.limit[~recurs] = 0
        return self.moves.confirmed()

    def stayed(self, mask: Mask) -> NDArray[np.bool_]:
        """Tell for each block whether the lanes in `mask` are all of it that the proof began with."""
        gone = np.asarray((self.lanes & ~mask.lanes).any(axis=(1, 2)))
        return mask.lanes.any(axis=(1, 2)) & ~gone

    def most(self, batch: Batch, counted: Counted, budget: int) -> int:
        """Return how many periods may pass until somebody else wants to see what happens."""
        assert batch.guide is not None
        steps = max(1, counted.steps - self._steps)
        most = min(MOST_PERIODS, (budget - counted.steps) // steps - 1)
        return max(0, min(most, batch.guide.most_periods(batch, self._counts.passed(batch))))

    def repeat(
        self,
        periods: NDArray[np.int64],
        moved: dict[int, NDArray[np.int64]],
        batch: Batch,
        counted: Counted,
        lengths: NDArray[np.int64],
    ) -> None:
        """Let each block of a batch be as it is after so many more periods."""
        times = periods[:, None, None]
        for slot, distance in moved.items():
            held = batch.registers[slot]
            batch.registers[slot] = held + (times * distance).astype(held.dtype)
        threads = self._counts.repeat(periods, batch)
        counted.steps += int(periods.max()) * (counted.steps - self._steps)
        counted.lane_instructions += int(lengths @ threads)
        if batch.phased:
            before, after = self._state.phase, batch.mbarriers.phase
            batch.mbarriers.phase = after + periods[:, None] * (after - before)
            batch.mbarriers.version += 1


class _Counts:
    """What a batch has counted."""

    def __init__(self, batch: Batch) -> None:
        assert batch.guide is not None
        tally = batch.tally
        self._tally = tally.events.copy(), tally.threads.copy(), tally.warps.copy()
        self._loops = {number: loop.copy() for number, loop in tally.loops.items()}
        self._groups = {number: group.counted() for number, group in batch.shared_groups.items()}
        self._now = batch.guide.now(batch).copy()

    def passed(self, batch: Batch) -> NDArray[np.int64]:
        """Return how much time of each block has passed since."""
        assert batch.guide is not None
        return batch.guide.now(batch) - self._now

    def repeat(self, periods: NDArray[np.int64], batch: Batch) -> NDArray[np.int64]:
        """Count what was counted since so many times more.

        Returns:
            How many threads that adds to each basic block's.
        """
        assert batch.guide is not None
        tally = batch.tally
        threads: NDArray[np.int64] = (periods * (tally.threads - self._tally[1])).sum(axis=1)
        passed = periods * self.passed(batch)
        for before, now in zip(self._tally, (tally.events, tally.threads, tally.warps), strict=True):
            now += periods * (now - before)
        for number, loop in tally.loops.items():
            loop.repeat(periods, self._loops[number])
        for number, group in batch.shared_groups.items():
            group.repeat(periods, self._groups.get(number, {}))
        batch.guide.let_pass(batch, passed)
        return threads


@dataclass(frozen=True)
class _State:
    """What a turn finds beside registers.

    Attributes:
        tables: Of mbarriers, but for their phases.
        phase: Those.
        in_flight: Bytes of copies for each of them; None where some bring values.
    """

    tables: tuple[NDArray[np.int64], ...]
    phase: NDArray[np.int64]
    in_flight: NDArray[np.int64] | None

    @classmethod
    def of(cls, batch: Batch) -> "_State":
        """Return what a batch is in."""
        if not batch.phased:
            nothing = np.zeros((batch.blocks, 1), dtype=np.int64)
            return cls((), nothing, nothing)
        barriers = batch.mbarriers
        tables = (barriers.pending, barriers.expected, barriers.present, barriers.transfer)
        return cls(tuple(table.copy() for table in tables), barriers.phase.copy(), batch.bulk.hollow_bytes)

    def recurs(self, after: "_State") -> NDArray[np.bool_] | None:
        """Tell for each block whether a later state is the same to who waits for phases by their parity."""
        if self.in_flight is None or after.in_flight is None or self.phase.shape != after.phase.shape:
            return None
        same = ((after.phase - self.phase) & 1) == 0
        for before, now in zip((*self.tables, self.in_flight), (*after.tables, after.in_flight), strict=True):
            same &= before == now
        return np.asarray(same.all(axis=1))


def _place(strand: Strand, others: Sequence[Strand]) -> tuple[object, ...]:
    """Return where a strand is, and who else is anywhere."""
    pending = tuple(join.pending for join in strand.joins())
    return strand.rejoin, id(strand.above), pending, tuple(map(id, others))


def _repeats(sums: list[int], period: int) -> bool:
    """Tell whether the last turn was as the one a period before it."""
    return len(sums) <= period or sums[-1] == sums[-1 - period]


def _period(sums: list[int]) -> int:
    """Return after how many turns the last ones repeat themselves; 0 if they do not."""
    for period in range(1, len(sums) // 2 + 1):
        if sums[-1] == sums[-1 - period] and sums[-period:] == sums[-2 * period : -period]:
            return period
    return 0


def _loops(program: Program) -> dict[int, frozenset[int]]:
    """Return the basic blocks of each loop, by its header; not of those that may be there to wait."""
    waiting = {turn.header for block in program.blocks for turn in block.turns.values()}
    before: dict[int, list[int]] = {number: [] for number in range(len(program.blocks))}
    for number, block in enumerate(program.blocks):
        for other in _successors(block):
            before[other].append(number)
    bodies: dict[int, set[int]] = {}
    begun, ended = {0}, set[int]()
    stack = [(0, iter(_successors(program.blocks[0])))]
    while stack:
        number, others = stack[-1]
        for other in others:
            if other in begun and other not in ended:
                _reach(bodies.setdefault(other, {other}), number, before)
            elif other not in begun:
                begun.add(other)
                stack.append((other, iter(_successors(program.blocks[other]))))
                break
        else:
            ended.add(number)
            stack.pop()
    return {header: frozenset(body) for header, body in bodies.items() if header not in waiting}


def _reach(body: set[int], last: int, before: dict[int, list[int]]) -> None:
    """Add to a loop what leads to the block that ends its turns."""
    pending = [last]
    while pending:
        number = pending.pop()
        if number not in body:
            body.add(number)
            pending += before[number]


def _successors(block: RunnableBlock) -> list[int]:
    return [number for number in (block.target, block.otherwise, *block.cases.values()) if number >= 0]
