# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The way of a usual warp through its machine code: through each block as often as warps do on average.

Loops are cut short: once their passes take the same time, the rest follows by multiplication.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import ceil

from gpuprof.executor import Loop, predecessors, reached
from gpuprof.machine_code.sass import Block

#: A loop is left once so many of its instructions, and so many passes, were gone through.
_LOOP_INSTRUCTIONS = 1200
_LEAST_PASSES = 3
_MOST_STEPS = 1500
#: A way is gone once it is this far behind its share.
_BEHIND = 0.5
#: Blocks that are executed as often, but for rounding.
_SAME = 1e-6
#: What some of a block's warps do, and the others not, so many at least do, or do not.
_BY_SOME = 0.75
#: Of passes of a loop, how far their mean may be from a whole number where all make as many.
_EVEN = 0.05
#: What waits for other warps of the block.
_MEETING = ("BAR", "SYNCS")


def usual_path(
    blocks: Sequence[Block],
    times: Sequence[float],
    loops: Mapping[int, Loop],
    behind: Mapping[tuple[int, int], float] | None = None,
    place: float = _BEHIND,
    block_place: float = _BEHIND,
    together: int = 0,
) -> tuple[int, ...]:
    """Return the numbers of the blocks that a usual warp executes, in order.

    Args:
        blocks: Of the machine code.
        times: How often a warp executes each, on average.
        loops: By the block where their passes begin.
        behind: Of ways, by the blocks at both ends, how far behind its share one is when it is gone. Warps
            of several such values share out what few of them do, and those that went one way what few of
            these do.
        place: The warp's among all, from 0 to 1: the first ones do what not all do, a pass more of a loop.
        block_place: Its block's among all: all warps of one make as many passes of a loop with a barrier.
        together: Passes to play at least of loops in which warps wait for others, that go other ways.
    """
    behind = dict(behind or {})
    passes = {header: passes_of(header, loop, times) for header, loop in loops.items()}
    varied = _varied(loops, times)
    places = {header: block_place if is_met_in(loops[header], blocks) else place for header in varied}
    played = {
        header: played_of(
            *(header, loop, blocks, times, passes[header] - places.get(header, _BEHIND)),
            together if is_met_in(loop, blocks) else 0,
        )
        for header, loop in loops.items()
    }
    latches = {
        header: {
            one
            for one in loop.body
            if header in blocks[one].successors
            and any(after not in loop.body and times[after] > 0 for after in blocks[one].successors)
        }
        for header, loop in loops.items()
    }
    inner_first = sorted(loops, key=lambda one: len(loops[one].body))
    done = dict.fromkeys(loops, 0)
    taken: Counter[int] = Counter()
    gone: Counter[tuple[int, int]] = Counter()
    steps, number = [0], 0
    calls: list[int] = []
    before = predecessors(blocks)
    parted = _Parted(blocks, loops)
    while len(steps) < _MOST_STEPS:
        taken[number] += 1
        parted.enter(number)
        callee = blocks[number].callee
        if callee is not None and times[callee] > 0:
            calls.append(number)
            number = callee
            steps.append(number)
            continue
        if calls and not blocks[number].successors:
            number = calls.pop()
        ways = [one for one in blocks[number].successors if times[one] > 0]
        for header in inner_first:
            if number in loops[header].body:
                again = done[header] + 1 < played[header]
                # A loop whose end may go on with the next pass is left there; ways out before it are rare.
                if again or number in latches[header] or not latches[header]:
                    ways = _held(ways, loops[header], again=again)
        if not ways or (
            len(ways) == 1
            and may_end(blocks[number])
            and times[ways[0]] / times[number] * taken[number] - gone[number, ways[0]]
            < behind.get((number, ways[0]), _BEHIND)
        ):
            break
        # Of two ways the rarer one is gone whenever it has fallen behind its share. A loop's begin is
        # executed once for each pass, and come to only once. Of two that come to the same, the one is tried
        # first whose share is dealt out.
        coming = {
            one: times[one] / (passes[one] if one in loops and number not in loops[one].body else 1)
            for one in ways
        }
        # Who comes by this way alone tells how many of those come by it who come to the other.
        alone = [one for one in ways if before[one] == [number]]
        if len(ways) == 2 and len(alone) == 1:
            other = ways[ways[0] == alone[0]]
            coming[other] = min(coming[other], max(0.0, times[number] - coming[alone[0]]))
        rarer = sorted(ways, key=lambda one: (coming[one], (number, one) not in behind, one))
        after = next(
            (
                one
                for one in rarer
                if coming[one] / times[number] * taken[number] - gone[number, one]
                >= behind.get((number, one), _BEHIND)
            ),
            rarer[-1],
        )
        gone[number, after] += 1
        if not any(number in loop.body for loop in loops.values()):
            _among_these(behind, number, after, {one: coming[one] / times[number] for one in rarer[:-1]})
        both = [after, *(one for one in ways if one != after)]
        if parted.part(number, both, sum(coming.values()) / times[number], taken[number]):
            gone[number, both[-1]] += 1
        after = parted.meeting(after)
        if after in loops:
            done[after] = done[after] + 1 if number in loops[after].body else 0
        number = after
        steps.append(number)
    return tuple(steps)


def _among_these(
    behind: dict[tuple[int, int], float], number: int, after: int, shares: Mapping[int, float]
) -> None:
    """Find a warp's place among those that went the same way as it, from its place among all that came."""
    for one, share in shares.items():
        if (place := behind.get((number, one), 0.0)) and 0 < share < 1:
            place = place / share if one == after else (place - share) / (1 - share)
            behind.update((way, min(max(place, 1e-3), 1.0)) for way, earlier in behind.items() if earlier)
        if one == after:
            return


class _Parted:
    """Lanes of a warp that go both ways of a branch: the others go theirs once the first ones meet again.

    Args:
        blocks: Of the machine code.
        loops: By the block where their passes begin.
    """

    def __init__(self, blocks: Sequence[Block], loops: Mapping[int, Loop]) -> None:
        self._loops, self._before = loops, predecessors(blocks)
        self._meetings = {block.together: number for number, block in enumerate(blocks)}
        #: Where lanes will meet, the nearest last, and the ways that are still to be gone before.
        self._open: list[tuple[int, list[int]]] = []
        self._parted: Counter[int] = Counter()

    def enter(self, number: int) -> None:
        """Come to a block."""
        while any(number == meeting for meeting, _ in self._open):
            self._open.pop()
        if number in self._meetings:
            self._open.append((self._meetings[number], []))

    def part(self, number: int, ways: Sequence[int], share: float, taken: int) -> bool:
        """Whether lanes go both ways of a block now: the last of `ways` is left to those that follow.

        Args:
            number: Of the block.
            ways: Both, or more.
            share: How often they are come to, relative to how often the block is.
            taken: How often it was.
        """
        bodies = [loop.body for loop in self._loops.values() if number in loop.body]
        if (
            not (self._open and len(ways) == 2 and all(self._before[one] == [number] for one in ways))
            or not all(body.issuperset(ways) for body in bodies)
            or share <= 1 + _EVEN
            or (share - 1) * taken - self._parted[number] < _BEHIND
        ):
            return False
        self._parted[number] += 1
        self._open[-1][1].append(ways[-1])
        return True

    def meeting(self, after: int) -> int:
        """Return where those go on who are about to come to a block, where all meet only if all are there."""
        if self._open and after == self._open[-1][0] and self._open[-1][1]:
            return self._open[-1][1].pop()
        return after


def hottest(blocks: Sequence[Block], times: Sequence[float]) -> int:
    """Return the block that most instructions are executed of."""
    return max(range(len(blocks)), key=lambda number: times[number] * len(blocks[number].instructions))


def passes_of(header: int, loop: Loop, times: Sequence[float]) -> float:
    """Return how many passes a warp makes that enters a loop."""
    entered = min(sum(times[one] for one in loop.entries), times[header])
    return max(1.0, times[header] / entered) if entered else 1.0


def played_of(
    header: int,
    loop: Loop,
    blocks: Sequence[Block],
    times: Sequence[float],
    passes: float,
    least: int = 0,
) -> int:
    """Return how many of them are played, at least so many if there are."""
    within = sum(times[one] * len(blocks[one].instructions) for one in loop.body)
    of_a_pass = max(1.0, within / times[header]) if times[header] else 1.0
    most = max(_LEAST_PASSES, least, _LOOP_INSTRUCTIONS / of_a_pass)
    return max(1, ceil(min(passes - _SAME, most - _BEHIND)))


def may_end(block: Block) -> bool:
    """Whether warps end at a block's end that do not go on."""
    last = block.instructions[-1]
    return last.name == "EXIT" and bool(last.guard)


def is_met_at(block: Block) -> bool:
    """Whether the warps of a block of threads wait for each other there."""
    return any(one.name in _MEETING for one in block.instructions)


def is_met_in(loop: Loop, blocks: Sequence[Block]) -> bool:
    """Whether warps wait for each other in a loop."""
    return any(is_met_at(blocks[one]) for one in loop.body)


def uneven(
    blocks: Sequence[Block], times: Sequence[float], loops: Mapping[int, Loop], warps: int
) -> tuple[set[int], bool]:
    """Return the blocks that some warps of a block execute, and whether their passes of a loop differ."""
    inside = {number for loop in loops.values() for number in loop.body}
    some = {
        number
        for number, count in enumerate(times)
        if count * warps >= _BY_SOME
        and (count < _BEHIND if number in inside else count * warps <= warps - _BY_SOME)
    }
    passes = [passes_of(one, loops[one], times) for one in _varied(loops, times)]
    return some, any(abs(each - round(each)) > _EVEN for each in passes)


def _varied(loops: Mapping[int, Loop], times: Sequence[float]) -> list[int]:
    """Return the loops of which some warps make a pass more than others, by the blocks where they begin.

    These stand in no other one, and have no other in them.
    """
    gone = {one: loop for one, loop in loops.items() if times[one]}
    return [
        one
        for one, loop in gone.items()
        if not any(one in other.body or begin in loop.body for begin, other in gone.items() if begin != one)
    ]


def _held(ways: list[int], loop: Loop, *, again: bool) -> list[int]:
    """Return those of a block's ways that stay in a loop, or that leave it, where it has both."""
    staying = [one for one in ways if one in loop.body]
    leaving = [one for one in ways if one not in loop.body]
    return ways if not (staying and leaving) and (again or not leaving) else staying if again else leaving


def ways_to(blocks: Sequence[Block], times: Sequence[float], goals: set[int]) -> Iterator[tuple[int, int]]:
    """Yield the ways that lead to goals where the other ways from the same block do not."""
    for number, block in enumerate(blocks if goals else ()):
        ways = [one for one in block.successors if times[one] > 0]
        if len(ways) > 1 or (ways and may_end(block)):
            without = partial(_after, blocks, number)
            behind = [reached([one], without) for one in ways]
            for place, one in enumerate(ways):
                others = set().union(*behind[:place], *behind[place + 1 :])
                if (behind[place] - others) & goals:
                    yield number, one


def _after(blocks: Sequence[Block], barred: int, one: int) -> set[int]:
    return {*blocks[one].successors} - {barred}
