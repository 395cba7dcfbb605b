# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Choose blocks that verify a grid whose blocks build on each other: those with a part in a few elements.

A sample of single blocks would wait for ever for the others. What is sampled here is elements of the outputs:
one that several blocks have a part in, if there is any, and one that is a single block's. To have them whole,
each of their blocks must come as far as its store to them, and so must every block that one of these takes
something from on the way. How far that is, is known from a launch without values.

Not all of a block's way is of interest. A persistent block computes one tile after the other; values matter
from where it has stored one to where it stores the next, and a little before, since loads run ahead.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from gpuprof.executor.memory.grid_trace import GridTrace

#: Two stores of a block belong together if less than this part of its way lies between them, or less than
#: that of the longest way between two: who stores in pieces pauses for less than a tile takes.
_GAP, _PAUSE = 1 / 64, 1 / 4
#: How long before its interval a block already runs with values: a part of the interval, and so many passes
#: of each warp through a basic block. Pipelines of eight stages and more are filled anew in less.
_AHEAD, _AHEAD_PASSES = 1 / 8, 128
#: What a basic block without values costs less than one with them, as a part of it.
_SAVED = 3 / 4
#: When nothing of a block matters.
_NEVER = 1 << 62
#: Candidates of each sort, by what they cost.
_CANDIDATES = 8
#: How much more elements of both sorts may cost than one that several blocks have a part in: where blocks
#: wait for each other, one that is a single block's by chance may take nearly all of them far along.
_MOST_DEARER = 2


@dataclass(frozen=True)
class BlockPart:
    """A block of the sample.

    Attributes:
        block: Its number in the launch.
        horizon: How far it must come, by its own time.
        begin: From when on what it stores counts; past the horizon where nothing does.
        ahead: From when on it runs with values: a little before, since loads run ahead.
        early: Until when it runs with values at first, and what it stores counts; 0 for not at all.
    """

    block: int
    horizon: int
    begin: int
    ahead: int
    early: int = 0


@dataclass(frozen=True)
class ClosedSample:
    """Blocks that build on nobody else, as far as they are run.

    Attributes:
        parts: The blocks.
    """

    parts: tuple[BlockPart, ...]

    @property
    def cost(self) -> float:
        """What it takes to run them, in basic blocks with values."""
        skipped = (max(0, min(part.ahead, part.horizon) - part.early) for part in self.parts)
        return sum(part.horizon for part in self.parts) - _SAVED * sum(skipped)

    def together_with(self, other: "ClosedSample") -> "ClosedSample":
        """Return a sample that is both."""
        parts = {part.block: part for part in self.parts}
        for part in other.parts:
            mine = parts.get(part.block, part)
            parts[part.block] = BlockPart(
                part.block,
                max(mine.horizon, part.horizon),
                min(mine.begin, part.begin),
                min(mine.ahead, part.ahead),
                max(mine.early, part.early),
            )
        return ClosedSample(tuple(parts[block] for block in sorted(parts)))

    def throughout(self) -> "ClosedSample":
        """Return the same blocks with values from their beginning."""
        return ClosedSample(tuple(replace(part, begin=0, ahead=0, early=0) for part in self.parts))


def choose_elements(trace: GridTrace, outputs: Sequence[int]) -> ClosedSample | None:
    """Choose a sample.

    Args:
        trace: Of the whole grid.
        outputs: Addresses of the buffers that are to be verified.

    Returns:
        None when nobody stored to any of the elements that the trace probes.
    """
    alone: list[ClosedSample] = []
    shared: list[ClosedSample] = []
    maps = [trace.maps[address] for address in outputs if address in trace.maps]
    for stores in {tuple(stores): None for known in maps for stores in known.probes.values() if stores}:
        needs: dict[int, int] = {}
        for block, time in stores:
            needs[block] = max(_burst(trace, block, time)[1], needs.get(block, 0))
        (alone if len(needs) == 1 else shared).append(_closed(trace, needs))
    if trace.overlooks:
        alone, shared = ([_with_overlooked(trace, one) for one in found] for found in (alone, shared))
    alone, shared = (sorted(found, key=lambda one: one.cost)[:_CANDIDATES] for found in (alone, shared))
    if not alone or not shared:
        return next(iter(alone or shared), None)
    pairs = [one.together_with(other) for one in shared for other in alone]
    pair = min(pairs, key=lambda pair: (pair.cost, len(pair.parts)))
    return pair if pair.cost <= _MOST_DEARER * shared[0].cost else shared[0]


def _closed(trace: GridTrace, needs: dict[int, int]) -> ClosedSample:
    """Return the blocks that come as far as `needs` says, and those that they take something from."""
    valued, reached = dict(needs), dict(needs)
    pending = list(needs)
    while pending:
        block = pending.pop()
        for taken in trace.takes.get(block, ()):
            matters = taken.time <= valued.get(block, -1) and not taken.control
            if taken.time > reached[block]:
                continue
            if taken.stored > reached.get(taken.writer, -1):
                reached[taken.writer] = taken.stored
                pending.append(taken.writer)
            if matters and taken.stored > valued.get(taken.writer, -1):
                valued[taken.writer] = taken.stored
                pending.append(taken.writer)
    return ClosedSample(
        tuple(_part(trace, block, reached[block], valued.get(block)) for block in sorted(reached))
    )


def _with_overlooked(trace: GridTrace, sample: ClosedSample) -> ClosedSample:
    """Return a sample that also has right what its blocks may have taken without the trace's notice.

    That is whatever one had stored when it told another that it is there.
    """
    horizons = {part.block: part.horizon for part in sample.parts}
    told: dict[int, list[int]] = {block: [0] for block in horizons}
    for block, horizon in horizons.items():
        for taken in trace.takes.get(block, ()):
            if taken.time <= horizon:
                told[taken.writer].append(taken.stored)
    parts = []
    for part in sample.parts:
        early = max(time for time in told[part.block] if time < max(part.begin, 1))
        parts.append(replace(part, early=early))
    return ClosedSample(tuple(parts))


def _part(trace: GridTrace, block: int, horizon: int, valued: int | None) -> BlockPart:
    """Return a block that comes to its horizon, and that has right what it stores until `valued`."""
    if valued is None:
        return BlockPart(block, horizon, _NEVER, _NEVER)
    before, _ = _burst(trace, block, valued)
    ahead = before - int((valued - before) * _AHEAD) - _AHEAD_PASSES * trace.warps
    return (
        BlockPart(block, horizon, before + 1, ahead)
        if before and ahead > 0
        else BlockPart(block, horizon, 0, 0)
    )


def _burst(trace: GridTrace, block: int, time: int) -> tuple[int, int]:
    """Return when a block's stores around a time end, and when those before them did; 0 for never."""
    times = sorted({when for known in trace.maps.values() for when in known.times_of(block)})
    ways = [then - before for before, then in pairwise([0, *times])]
    gap = max(times[-1] * _GAP, max(ways) * _PAUSE) if times else 0
    first = last = time
    for when in times:
        if last < when <= last + gap:
            last = when
    for when in reversed(times):
        if when < first:
            if first - when > gap:
                return when, last
            first = when
    return 0, last
