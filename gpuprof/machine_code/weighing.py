# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How often warps execute each block of machine code, from the executor's counts: exactly, or between bounds.

First those blocks are known that something in them speaks for; what remains follows from the ways between
blocks. A warp that executes a block came from one before it, and goes on to one behind it or ends: so no
block is executed more often than those before it together, nor than those behind it. Lanes that part make a
warp execute two blocks where it executed one, until they meet at a BSYNC; with the number of such partings,
which the executor counts too, both sums are equal.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from math import inf

from gpuprof.executor import WARP, Iterations, LaunchResult, left_over, predecessors, reached
from gpuprof.machine_code.linking import FIXED, Anchors, Copies, Link, goes_into

#: Times that bounds are passed on from block to block, at most.
_SWEEPS = 200
#: Counts of a sample are scaled by ratios, so that equal ones may differ by rounding.
_SLACK = 1e-9
#: Share of the instructions of a block that must agree where none of them is known to stay in its place.
_NEARLY_ALL = 0.75


#: The least and the largest number of times that warps executed each block of a launch's machine code.
Weights = Sequence[tuple[float, float]]


def _made(turns: Mapping[Iterations, float]) -> float:
    """Return how many iterations warps made together."""
    return sum(made[0] * entries for made, entries in turns.items())


def weigh(link: Link, result: LaunchResult) -> Weights:
    """Return how often warps executed each block of the machine code of a launch."""
    scale = _Scale(link, result)
    for number, anchors in enumerate(link.anchors):
        if anchors.lanes is not None:
            scale.settle(number, [scale.count(anchors.lanes, scale.threads)])
            scale.entries[number] = scale.count(anchors.lanes)
        elif anchors.fixed:
            scale.settle(number, [scale.count(line) / anchors.times.get(line, 1) for line in anchors.fixed])
        elif anchors.made in scale.requests:
            scale.settle(number, [scale.requests[anchors.made]])
        if anchors.guarded:
            least = [scale.count(line) / anchors.times.get(line, 1) for line in anchors.guarded]
            scale.raise_to(number, max(least))
    for copies in link.copies:
        scale.unroll(copies)
    for kind in ("", "loads", "others"):
        for number, anchors in enumerate(link.anchors):
            scale.tighten(number, [scale.count(line) for line in getattr(anchors, kind, ())])
        for header, twin in link.twins.items():
            scale.enter(header, twin)
        scale.pass_on()
    return [*zip(scale.low, scale.high, strict=True)]


def regrouped(
    link: Link, weights: Weights, result: LaunchResult
) -> Iterator[tuple[frozenset[int], float, float | None]]:
    """Yield loops that ptxas unrolled where lanes of a warp make different numbers of iterations.

    What lanes have left over they make together, of whichever iteration each is. Each comes by its lines of
    the PTX text, the iterations that warps made, and how many more a card's make: None if that is not known.
    """
    for copies in link.copies:
        turns = result.loop_iterations.get(copies.loop, {})
        left = (left_over(made, max(copies.factors.values())) for made in turns if len(made) > 1)
        if any(rest is None or rest[0] for rest in left):
            low, high = (
                sum(factor * weights[number][bound] for number, factor in copies.factors.items())
                for bound in (0, 1)
            )
            made = _made(turns)
            known = low == high and not copies.guarded
            yield copies.lines, made, low - made if known else None


def branch_lines(link: Link, weights: Weights) -> tuple[Set[int], Set[int]]:
    """Return branches of the PTX that are one of the machine code's, and those of unknown partings, by lines.

    Of the latter ptxas made several branches, or one of several, or waiting warps repeat them. The rest are
    none: lanes end there, or what follows is under predicates.
    """
    one, unknown = set[int](), set[int]()
    if any(high == inf for _, high in weights):
        unknown |= link.homes.keys()
    for block, anchors, (_, high) in zip(link.code.blocks, link.anchors, weights, strict=True):
        ways = [way for way in block.ways if way != block.apart and weights[way][1]]
        if high and len(ways) > 1:
            last = block.instructions[-1]
            if len(anchors.branches) == 1:
                one.add(anchors.branches[0])
            elif last.name == "BRX":
                unknown |= link.homes.keys()
            else:
                unknown |= {last.line, *anchors.branches}
    return one, unknown


class _Scale:
    """Bounds of all blocks, which only come closer."""

    def __init__(self, link: Link, result: LaunchResult) -> None:
        self.blocks = link.code.blocks
        self.homes = link.homes
        #: Of basic blocks of the program, as the executor counted them.
        self.warps: list[float] = result.block_warps.tolist()
        self.threads: list[float] = result.block_threads.tolist()
        self.block_parted: list[float] = result.block_parted.tolist()
        self.turns = result.loop_iterations
        asked: defaultdict[int | None, list[float]] = defaultdict(list)
        for site, counted in result.sites:
            if "requests" in counted and site.family != "async_copy_shared":
                asked[site.ptx_line].append(counted["requests"])
        #: Warps of which a lane made an access, by its line of the PTX text; lanes of one may go elsewhere.
        self.requests = {line: max(each) for line, each in asked.items() if sum(map(bool, each)) < 2}
        count = len(self.blocks)
        self.low, self.high = [0.0] * count, [inf] * count
        self.before = predecessors(self.blocks)
        self.callers: list[list[int]] = [[] for _ in self.blocks]
        for number, block in enumerate(self.blocks):
            if block.callee is not None:
                self.callers[block.callee].append(number)
        self._spare_whole_warps()
        self._spare_slow_ways(result.middling)
        self.loops = link.loops
        #: Of loops, how often warps entered them, where that is known, by the blocks where iterations begin.
        self.entries: dict[int, float] = {}
        self.parted = [self._parted(number, anchors) for number, anchors in enumerate(link.anchors)]
        self._ending: dict[tuple[int, int], bool] = {}
        come_to = reached([0], lambda one: [way for way in self.blocks[one].ways if self.high[way]])
        for number in {*range(count)} - come_to:
            self.high[number] = 0.0
        self.entered = self.warps[0]
        if not self.before[0]:
            self.settle(0, [self.entered])

    def _spare_whole_warps(self) -> None:
        """Leave out what blocks do for warps whose lanes are not all there, where all are."""
        for block in self.blocks:
            if block.apart is None:
                continue
            near = (block, *(self.blocks[one] for one in block.successors if one != block.apart))
            there = [one for part in near for one in part.instructions if one.line in self.homes]
            # Others may have come here, under predicates, from what few lanes do.
            stay = [one for one in there if one.name in FIXED and not one.guard]
            ran = [line for line in {one.line for one in stay or there} if self.count(line)]
            if ran and all(map(self._is_whole, ran)):
                self.high[block.apart] = 0.0

    def _spare_slow_ways(self, middling: Set[int]) -> None:
        """Leave out calls of what ptxas brings for operands of divisions and roots that no thread had."""
        for number, block in enumerate(self.blocks):
            chosen = any(len(self.blocks[one].successors) > 1 for one in self.before[number])
            last = block.instructions[-1]
            if block.callee is not None and chosen and not last.guard and last.line in middling:
                self.high[number] = 0.0

    def _is_whole(self, line: int) -> bool:
        lanes = WARP * self.count(line)
        return abs(self.count(line, self.threads) - lanes) <= _SLACK * lanes

    def _parted(self, number: int, anchors: Anchors) -> float | None:
        """Return how often lanes of a warp parted at the end of a block; None where that is not known."""
        if len(self.blocks[number].successors) < 2 or not any(self.block_parted):
            return 0.0
        if not anchors.branches:
            return None
        counts = [count for line in anchors.branches if (count := self.count(line, self.block_parted))]
        # Of branches that became one, each may have parted other lanes.
        return counts[0] if len(counts) == 1 else None if counts else 0.0

    def count(self, line: int, counts: Sequence[float] | None = None) -> float:
        """Return how often warps ran a line of the PTX text."""
        counts = self.warps if counts is None else counts
        return float(sum(counts[home] for home in self.homes[line]))

    def settle(self, number: int, counts: Sequence[float]) -> None:
        """Bound a block by counts that should all be its own."""
        if self.high[number]:
            self.low[number], self.high[number] = min(counts), max(counts)

    def raise_to(self, number: int, count: float) -> None:
        """Make sure that a block is not bounded by less than what a part of it needs."""
        if self.high[number]:
            self.low[number] = max(self.low[number], count)
            self.high[number] = max(self.high[number], count)

    def tighten(self, number: int, counts: Sequence[float]) -> None:
        """Settle a block that is not known yet, where nearly all counts that are possible for it agree.

        The others are of instructions that ptxas moved here.
        """
        low, high = self.low[number], self.high[number]
        if high - low > _SLACK * max(1.0, low):
            possible = [count for count in counts if low * (1 - _SLACK) <= count <= high * (1 + _SLACK)]
            if possible:
                middle = sorted(possible)[len(possible) // 2]
                agreeing = [count for count in possible if abs(count - middle) <= _SLACK * middle]
                if len(agreeing) >= _NEARLY_ALL * len(possible):
                    self.settle(number, agreeing)

    def unroll(self, copies: Copies) -> None:
        """Settle the copies of a loop from the iterations that warps made in it.

        ptxas makes a loop of several iterations at once, then takes what is left in ever smaller pieces. Some
        that every entry makes may come before, so many that nothing is left; or all stand in a row.
        """
        turns = self.turns.get(copies.loop, {})
        counted = _made(turns)
        if abs(counted - self.warps[copies.loop]) > _SLACK * max(1.0, counted):
            return
        pieces = [
            (number, part)
            for number, factor in sorted(copies.factors.items())
            for part in sorted(copies.guarded.get(number, (factor,)), reverse=True)
        ]
        factors = [factor for _, factor in pieces]
        first = int(len(factors) > 1 and self._always_comes(pieces[0][0], pieces[1][0]))
        row = not any(number in self.blocks[number].successors for number in copies.factors)
        if max(factors) == 1 and row:
            first = len(factors)
        settled: list[tuple[int, float, float]] = []
        if not first and factors[0] == 1 < max(factors):
            # What may be left out before all others is for a counter that begins below one, and wraps.
            settled.append((pieces.pop(0)[0], 0.0, 0.0))
            del factors[0]
        if factors[first:] != sorted({*factors[first:]}, reverse=True):
            return
        for position, (number, factor) in enumerate(pieces):
            passes, entered, left = 0.0, 0.0, defaultdict[Iterations, float](float)
            for made, entries in turns.items():
                times, rest = made[0] // factor, left_over(made, factor)
                if position < first:
                    times = min(made[0], 1)
                    rest = (made[0] - times * factor,) if len(made) == 1 else None
                if rest is None:
                    return
                passes += times * entries
                entered += entries if times else 0
                left[rest] += entries
            settled.append((number, passes, entered))
            turns = left
        if any(made[0] for made in turns):  # they do not fit
            return
        for number, passes, entered in settled:
            if number in copies.guarded:
                continue
            self.settle(number, [passes])
            if number in self.loops:
                self.entries[number] = entered

    def _always_comes(self, number: int, after: int) -> bool:
        """Whether whatever leads to a block leads nowhere else, or to a loop behind it through it alone."""
        if all(self.blocks[one].successors == (number,) for one in self.before[number]):
            return True
        without = reached([0], lambda one: {*self.blocks[one].successors} - {number})
        return goes_into(number, after, self.loops) and after not in without

    def enter(self, header: int, twin: int) -> None:
        """Note how often warps entered a loop, if it makes the iterations that its twin of the PTX makes."""
        turns = self.turns.get(twin, {})
        made = _made(turns)
        if abs(self.low[header] - made) <= _SLACK * made and abs(self.high[header] - made) <= _SLACK * made:
            self.entries[header] = sum(turns.values())

    def pass_on(self) -> None:
        """Let bounds follow the ways between blocks until nothing comes closer."""
        pending = {*range(len(self.blocks))}
        for _ in range(_SWEEPS):
            changed: set[int] = set()
            for number in sorted(pending):
                for other, low, high in self._implied(number):
                    changed |= self._narrow(other, low, high)
            if not changed:
                return
            pending = changed | {
                near for one in changed for near in (*self.before[one], *self.blocks[one].successors)
            }

    def _narrow(self, number: int, low: float, high: float) -> set[int]:
        old = self.low[number], self.high[number]
        # What speaks for a block goes before what would follow from others.
        new = min(max(old[0], low), old[1]), max(min(old[1], high), old[0])
        self.low[number], self.high[number] = new
        return {number} if new != old else set()

    def _coming(self, number: int) -> tuple[float, list[int]]:
        """Return how often warps come to a block, at least, and from where: to a loop from outside of it."""
        if number in self.entries:
            return self.entries[number], [*self.loops[number].entries]
        return self.low[number], self.before[number]

    def _going(self, number: int) -> tuple[float, list[int]]:
        """Return how often warps go on from a block, at least, and to where: from a loop of one block out."""
        after, parted = self.blocks[number].successors, self.parted[number] or 0.0
        if number in self.entries and number in after:
            return self.entries[number], [one for one in after if one != number]
        return self.low[number] + parted, [*after]

    def _implied(self, number: int) -> Iterator[tuple[int, float, float]]:
        """Yield blocks with the bounds that follow from one block and those before and behind it."""
        low, high = self.low, self.high
        block, callers, before = self.blocks[number], self.callers[number], self.before[number]
        if callers and not before:
            yield number, sum(low[one] for one in callers), sum(high[one] for one in callers)
        elif number and before and not callers:
            yield number, 0.0, sum(self._most(one, number) for one in before)
            least, comers = self._coming(number)
            again = [one for one in before if one not in comers]
            for part, come in ((comers, least), (again, low[number] - least)):
                for one in part:
                    yield one, come - sum(self._most(other, number) for other in part if other != one), inf
        meeting = any(self._meets(one) for one in block.successors)
        if block.successors and not block.leaves and not meeting:
            yield number, 0.0, sum(high[one] for one in block.successors)
            least, goals = self._going(number)
            for one in goals:
                yield one, least - sum(self._brought(number, other) for other in goals if other != one), inf
        if block.together is not None:
            # Others may come by a way on which lanes never parted.
            straight = [one for one in before if self.blocks[one].instructions[-1].name != "BSYNC"]
            yield number, 0.0, high[block.together] + sum(self._most(one, number) for one in straight)
            if straight:
                return
            if not self._may_end(block.together, number):
                yield number, low[block.together], inf
                yield block.together, 0.0, high[number]
        elif number not in self.entries:
            yield from self._equal(number)

    def _equal(self, number: int) -> Iterator[tuple[int, float, float]]:
        """Where no lanes meet, all that comes to a block executes it, and all that leaves it goes on."""
        before, after = self.before[number], self.blocks[number].successors
        if before and not self.callers[number]:
            staying = [one for one in before if not self.blocks[one].leaves]
            yield number, sum(max(0.0, self._least(one, number)) for one in staying), inf
        fed = {one: least for one in after for least, comers in (self._coming(one),) if comers == [number]}
        parted = self.parted[number]
        if fed and parted is not None and not any(self._meets(one) for one in fed):
            yield number, sum(fed.values()) - parted, inf
            for one in fed:
                if one not in self.entries:
                    others = sum(least for other, least in fed.items() if other != one)
                    yield one, 0.0, self.high[number] + parted - others

    def _meets(self, number: int) -> bool:
        """Whether lanes that parted go on together at a block, so that fewer execute it than come there."""
        return self.blocks[number].together is not None

    def _least(self, number: int, after: int) -> float:
        """Return how often warps go on from a block to one behind it, at least."""
        least, goals = self._going(number)
        if after not in goals:
            return 0.0
        return least - sum(self._brought(number, one) for one in goals if one != after)

    def _most(self, number: int, after: int) -> float:
        """Return how often warps go on from a block to one behind it, at most."""
        parted = self.parted[number]
        if parted is None:
            return self.high[number]
        if number in self.entries and after != number and number in self.blocks[number].successors:
            # Who enters a loop leaves it once, or part by part.
            return min(self.high[number], self.entries[number] + parted)
        others = [one for one in self.blocks[number].successors if one != after and not self._meets(one)]
        taken = sum(self._brought(number, one, self.low) for one in others if self._alone(number, one))
        return min(self.high[number], max(0.0, self.high[number] + parted - taken))

    def _brought(self, number: int, after: int, counts: Sequence[float] = ()) -> float:
        """Return how often warps come from a block to another by all ways like that: at most, or by `counts`.

        To a loop come those that enter it, and from its end those that make it again.
        """
        count, entered = (counts or self.high)[after], self.entries.get(after)
        if entered is None:
            return count
        return max(0.0, count - entered) if number in self.loops[after].body else entered

    def _alone(self, number: int, after: int) -> bool:
        """Whether no other block leads to one as that does: into a loop, or back to its begin."""
        before = self.before[after]
        if after in self.entries:
            body = self.loops[after].body
            before = [one for one in before if (one in body) == (number in body)]
        return before == [number]

    def _may_end(self, first: int, last: int) -> bool:
        """Tell whether warps may end on their way from one block to another."""
        if (first, last) not in self._ending:
            seen = reached([first], lambda one: {*self.blocks[one].successors} - {last})
            self._ending[first, last] = any(self.blocks[one].leaves for one in seen - {last})
        return self._ending[first, last]
