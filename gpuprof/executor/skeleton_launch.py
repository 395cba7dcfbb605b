# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Launch a grid without values, for its counts and its trace; then, with values, the blocks that verify it.

The first launch runs every block, but only its skeleton: where it goes, what it touches, whom it waits for.
The second runs a closed sample, in which nobody waits for a block that is not there.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from math import prod

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.closed_sample import BlockPart, ClosedSample
from gpuprof.executor.decode import Program
from gpuprof.executor.faults import FaultKind, KernelFault
from gpuprof.executor.grid_launch import DEFAULT_BUDGET, LaunchResult, launch
from gpuprof.executor.lanes.masks import WARP, Mask
from gpuprof.executor.launch_template import Argument
from gpuprof.executor.memory.global_memory import Buffer, GlobalMemory
from gpuprof.executor.memory.grid_trace import GridTrace
from gpuprof.executor.memory.moments import Timeline
from gpuprof.executor.memory.shared_memory import SharedMemory
from gpuprof.executor.memory.thread_order import ThreadOrder
from gpuprof.executor.sampling import Sample, Stratum
from gpuprof.executor.steps.batch import Batch, EndOfSample

#: Batches of a sample, of which each may wait for all others.
_FEW_BATCHES = 12
#: What a batch takes however few blocks it has, in blocks.
_BATCH_COSTS = 8
#: Instructions of a batch. What keeps it from going on for ever is how many steps it may take, or how far it
#: is wanted.
_BUDGET = 1000 * DEFAULT_BUDGET


class TooMuchWork(Exception):
    """A launch takes more steps than it may."""


@dataclass(frozen=True)
class GridLaunch:
    """How a kernel is launched.

    Attributes:
        program: The kernel, with a skeleton.
        grid: Blocks in x, y, z.
        block: Threads of a block in x, y, z.
        dynamic_shared_bytes: Bytes of `extern __shared__` memory per block.
        cooperative: Whether all blocks are there at once.
        multiprocessors: Of the card.
        watched_loops: As for `launch`.
        merged_atomics: As for `launch`.
    """

    program: Program
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared_bytes: int = 0
    cooperative: bool = False
    multiprocessors: int = 132
    watched_loops: tuple[int, ...] = ()
    merged_atomics: frozenset[int] = frozenset()

    def without_values(
        self, args: Sequence[Argument], memory: GlobalMemory, most_steps: float
    ) -> tuple[LaunchResult, GridTrace]:
        """Run every block's skeleton.

        Args:
            args: As for `launch`.
            memory: As for `launch`; what is stored as a float does not get there.
            most_steps: Steps of single lanes that this may take.

        Returns:
            What the launch counts, and who did what to global memory.

        Raises:
            KernelFault: As for `launch`, but for races and what was never written.
            TooMuchWork: It takes more steps.
            ValueNeeded: What blocks do depends on values that they compute.
        """
        trace = GridTrace(prod(self.grid), self._warps)
        guide = _WithoutValues(self.program, trace, most_steps)
        return self._launched(args, memory, None, guide), trace

    def with_values(self, args: Sequence[Argument], memory: GlobalMemory, sample: ClosedSample) -> GridTrace:
        """Run the blocks of a sample as far as they are wanted, and return who of them did what.

        Args:
            args: As for `launch`.
            memory: As for `launch`.
            sample: The blocks.

        Raises:
            KernelFault: As for `launch`.
            ValueNeeded: A block reads what was stored without its value.
        """
        trace = GridTrace(len(sample.parts), self._warps)
        batches = _batches(sample)
        guide = _AsFarAsWanted(self.program, trace, batches)
        x, y, _ = self.grid
        strata = []
        for part in chain.from_iterable(batches):
            index = (part.block % x, part.block // x % y, part.block // (x * y))
            first, second, third = (range(i, i + 1) for i in index)
            strata.append(Stratum((first, second, third), 1))
        try:
            self._launched(args, memory, Sample(tuple(strata)), guide)
        except KernelFault as fault:
            # A block at its horizon may wait for one that is not in the sample.
            if fault.kind is not FaultKind.ENDLESS:
                raise
        return trace

    @property
    def _warps(self) -> int:
        return -(-prod(self.block) // WARP)

    def _launched(
        self,
        args: Sequence[Argument],
        memory: GlobalMemory,
        sample: Sample | None,
        guide: "_WithoutValues | _AsFarAsWanted",
    ) -> LaunchResult:
        return launch(
            self.program,
            self.grid,
            self.block,
            args,
            memory,
            self.dynamic_shared_bytes,
            sample or "all",
            instruction_budget=_BUDGET,
            cooperative=self.cooperative,
            multiprocessors=self.multiprocessors,
            watched_loops=self.watched_loops,
            merged_atomics=self.merged_atomics,
            guide=guide,
        )


def _batches(sample: ClosedSample) -> list[list[BlockPart]]:
    """Return the blocks that shall run together: of many, those that come about as far; a few one by one.

    All of a batch run until the last of them has come far enough.
    """
    parts = sorted(sample.parts, key=lambda part: (part.horizon, part.block))
    costs = _BATCH_COSTS
    while len(cuts := _cuts([part.horizon for part in parts], costs)) > _FEW_BATCHES:
        costs *= 2
    batches = [parts[first:last] for first, last in pairwise([0, *cuts])]
    for batch in sorted(batches, key=len):
        if len(batches) + len(batch) - 1 <= _FEW_BATCHES:
            batches.remove(batch)
            batches += [[part] for part in batch]
    # In the order of the launch: who stops before it has released a lock must not come first.
    ordered = [sorted(batch, key=lambda part: part.block) for batch in batches]
    return sorted(ordered, key=lambda batch: batch[0].block)


def _cuts(horizons: Sequence[int], costs: int) -> list[int]:
    """Return where the batches end that take least, of blocks that come so far, in rising order."""
    ends = [end for end in range(1, len(horizons)) if horizons[end] > horizons[end - 1]] + [len(horizons)]
    best: dict[int, tuple[int, list[int]]] = {0: (0, [])}
    for end in ends:
        best[end] = min(
            (taken + horizons[end - 1] * (end - first + costs), [*before, end])
            for first, (taken, before) in best.items()
        )
    return best[len(horizons)][1]


class _Traced:
    """A guide that keeps a trace of what its batches do."""

    def __init__(self, program: Program, trace: GridTrace) -> None:
        self.program = program
        self.trace = trace
        self._timed = frozenset(program.timed)
        #: The time of each block of a batch, by the batch's first block.
        self._now: dict[int, NDArray[np.int64]] = {}

    def most_together(self, first: int) -> int | None:
        """As a guide does."""
        return None

    def follow(self, batch: Batch, first: int) -> None:
        """Keep the trace of a batch, too."""
        batch.trace = self.trace
        self._now[first] = now = np.zeros(batch.blocks, dtype=np.int64)
        self.trace.follow(first, now.copy)

    def passed(self, batch: Batch, block: int, mask: Mask) -> NDArray[np.int64]:
        """Let time pass while the lanes in `mask` run a basic block; return the time of each block."""
        now = self._now[batch.order.first]
        if block in self._timed:
            now += mask.warp_count
        return now


class _WithoutValues(_Traced):
    """Runs the skeleton of every block; nothing is judged."""

    moves_values = False

    def __init__(self, program: Program, trace: GridTrace, most_steps: float) -> None:
        super().__init__(program, trace)
        trace.in_full = True
        self._left = most_steps
        self._lengths = [len(block.skeleton) for block in program.blocks]

    def begin(self, batch: Batch, first: int, buffers: list[Buffer]) -> None:
        """As a guide does."""
        batch.guide = self
        self.follow(batch, first)
        batch.skeletal = True
        if "shared" in self.program.deciding:
            batch.hollow_shared = SharedMemory(batch.blocks, batch.shared.size)
            batch.hollow_shared.content[:] = 0
        if "local" in self.program.deciding:
            batch.hollow_local = np.zeros_like(batch.local)
        batch.races.dismiss()
        batch.order = batch.races.order = ThreadOrder(Timeline(), first, batch.blocks, batch.warps)
        self.trace.watch(buffers)
        batch.observe([self.trace])

    def advance(self, batch: Batch, block: int, mask: Mask) -> None:
        """As a guide does.

        Raises:
            TooMuchWork: There have been too many steps.
        """
        self.passed(batch, block, mask)
        self._left -= self._lengths[block] * mask.total_threads
        if self._left < 0:
            raise TooMuchWork


class _AsFarAsWanted(_Traced):
    """Runs each block as far as it is wanted, and with values where these matter."""

    moves_values = True

    def __init__(self, program: Program, trace: GridTrace, batches: list[list[BlockPart]]) -> None:
        super().__init__(program, trace)
        parts = list(chain.from_iterable(batches))
        self._horizon, self._begin, self._ahead, self._early = (
            np.array([getattr(part, name) for part in parts])
            for name in ("horizon", "begin", "ahead", "early")
        )
        self._ends = list(accumulate(map(len, batches)))
        #: Of each batch, by its first block: the lanes that lived when it was looked at last, and until when
        #: nothing changes in how its blocks run.
        self._seen: dict[int, tuple[Mask, NDArray[np.int64]]] = {}

    def most_together(self, first: int) -> int:
        """As a guide does."""
        return self._ends[bisect_right(self._ends, first)] - first

    def begin(self, batch: Batch, first: int, buffers: list[Buffer]) -> None:
        """As a guide does."""
        batch.guide = self
        self.follow(batch, first)
        self.trace.watch(buffers)
        batch.observe([self.trace], beside=True)

    def advance(self, batch: Batch, block: int, mask: Mask) -> None:
        """As a guide does."""
        first, now = batch.order.first, self.passed(batch, block, mask)
        seen = self._seen.get(first)
        if seen is not None and seen[0] is batch.live and (now < seen[1]).all():
            return
        chosen = slice(first, first + batch.blocks)
        early, ahead = self._early[chosen], self._ahead[chosen]
        marks = np.stack([self._horizon[chosen] + 1, self._begin[chosen], ahead, early + 1])
        self._seen[first] = batch.live, np.where(marks > now, marks, np.iinfo(np.int64).max).min(axis=0)
        living = batch.live.active_warps.any(axis=(1, 2))
        if not (living & (now <= self._horizon[chosen])).any():
            raise EndOfSample
        self.trace.trusted[chosen] = (now >= self._begin[chosen]) | (now <= early)
        batch.skeletal = bool(((now < ahead) & (now > early)).all())
        if batch.skeletal and batch.races.judges:
            batch.races.dismiss()  # what is not seen cannot be judged later on
