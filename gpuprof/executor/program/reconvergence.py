# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Where lanes meet before others of their warp that went another way: what ptxas does with BREAK.

All of this was read off the machine code of small kernels.
"""

from collections.abc import Iterator, Mapping
from functools import partial

from msgspec import Struct

from gpuprof.executor.program.flow import (
    EXIT_BLOCK,
    FREE,
    BasicBlock,
    End,
    bit_of,
    nearest,
    passed_always,
    reached,
    rejoins,
)
from gpuprof.executor.program.loops import Loop, accesses_memory, loops_of, predecessors, waiting_loops

#: How many instructions are as much to do as an access of memory.
_MANY = 11
#: What of 64 bits takes two.
_IN_TWO = frozenset({"selp", "shl", "shr", "and", "or", "xor", "not", "min", "max"})


class _Place(Struct, frozen=True):
    """A block that some of the lanes that part at `root` come to before all meet, and what they do there."""

    number: int
    root: int
    meeting: int
    work: int
    accesses: bool
    usual: bool


def meet_sooner(blocks: list[BasicBlock]) -> None:
    """Find where lanes meet before others of their warp that left a loop, or a branch in another way.

    ptxas lets `for (;;) { if (a) { if (b) break; x } y }` meet before y: who leaves does so for good (BREAK).
    Of loops in one another, lanes may leave the outermost that they can leave on their way, and no other.
    Loops that may be there to wait are left out, whose lanes are told apart by what they find.
    """
    waiting = {number for loops in waiting_loops(blocks).values() for loop in loops for number in loop.body}
    loops = dict(sorted(loops_of(blocks).items(), key=lambda item: -len(item[1].body)))
    for header, loop in loops.items():
        inside = {number: loop.body.intersection(blocks[number].successors) for number in sorted(loop.body)}
        ways = {n: {EXIT_BLOCK if goal == header else goal for goal in inside[n]} for n in inside}
        for number, place in nearest(passed_always(ways, EXIT_BLOCK)).items():
            if EXIT_BLOCK not in (number, place) and number not in waiting:
                before = reached([number], partial(_but, ways, place))
                goals = {goal for one in before for goal in blocks[one].successors} - {EXIT_BLOCK}
                if not goals <= loop.body:
                    _set_sooner(blocks, number, place)
    left = _left_for_good(blocks, loops)
    for number, place in enumerate(rejoins(blocks, left) if left else ()):
        if place != EXIT_BLOCK and number not in waiting:
            _set_sooner(blocks, number, place)


def _set_sooner(blocks: list[BasicBlock], number: int, place: int) -> None:
    block = blocks[number]
    if block.end in (End.BRANCH, End.SWITCH) and block.sooner is None and place != block.rejoin:
        block.sooner = place
        if block.rejoin != EXIT_BLOCK:
            blocks[block.rejoin].left_to = True


def _but(ways: Mapping[int, set[int]], place: int, number: int) -> set[int]:
    return ways[number] - {place}


def _left_for_good(blocks: list[BasicBlock], loops: Mapping[int, Loop]) -> set[tuple[int, int]]:
    """Return the ways on which lanes leave those that meet at a place which they do not come to.

    Of the places that lanes come to by several ways, or from several iterations of a loop, ptxas picks the
    one with most to do before all meet, if that accesses memory or is many instructions.
    """
    before = predecessors(blocks)
    above = passed_always({number: comers for number, comers in enumerate(before) if number}, 0)
    chosen: list[_Place] = []
    left: set[tuple[int, int]] = set()
    for place in sorted(_places(blocks, loops, before, above), key=lambda one: -one.work):
        root = above[place.root]
        rivals = [above[one.root] for one in chosen if one.meeting == place.meeting]
        if all(root | other not in (root, other) for other in rivals):
            chosen.append(place)
            if place.usual and (place.work >= _MANY or place.accesses):
                left.update(_ways_past(blocks, before, place))
    return left


def _ways_past(blocks: list[BasicBlock], before: list[list[int]], place: _Place) -> Iterator[tuple[int, int]]:
    """Yield the ways from blocks that may lead to a place to others that do not."""
    onward = _within(blocks, place.root, {place.number, place.meeting})
    coming = reached(onward.intersection(before[place.number]), lambda one: onward.intersection(before[one]))
    for number in coming:
        for goal in {*blocks[number].successors} - coming - {place.number}:
            yield number, goal


def _within(blocks: list[BasicBlock], first: int, stops: set[int]) -> set[int]:
    """Return the blocks that one leads to without passing some others."""
    return reached([first], lambda one: {*blocks[one].successors} - stops - {EXIT_BLOCK})


def _places(
    blocks: list[BasicBlock], loops: Mapping[int, Loop], before: list[list[int]], above: Mapping[int, int]
) -> Iterator[_Place]:
    """Yield the places that lanes come to by several ways, or from several iterations, before all meet."""
    roots = nearest(above)
    ends = [_ends(blocks, header, loop.body) for header, loop in loops.items()]
    usual, first = ({place for both in ends for place in both[n]} for n in (0, 1))
    broken = {one for loop in loops.values() if len(_goals(blocks, loop)) > 1 for one in loop.body}
    for number, comers in enumerate(before):
        root = roots.get(number, EXIT_BLOCK)
        several = sum(not above[one] & bit_of(number) for one in comers) > 1
        meeting = EXIT_BLOCK if root == EXIT_BLOCK else blocks[root].rejoin
        inner = {one for loop in loops.values() if meeting not in loop.body for one in loop.body}
        if meeting in (EXIT_BLOCK, number) or number in inner or not (several or number in usual | first):
            continue
        if root not in inner and broken.intersection(inner, comers):  # around a loop that is left elsewhere
            continue
        passed = _within(blocks, number, {meeting})
        items = [item for one in passed for item in blocks[one].items if item.opcode[0] not in FREE]
        work = sum(1 + (i.opcode[0] in _IN_TWO and i.opcode[-1].endswith("64")) for i in items)
        accesses = any(map(accesses_memory, items))
        yield _Place(number, root, meeting, work, accesses, number in usual or root not in inner)


def _goals(blocks: list[BasicBlock], loop: Loop) -> set[int]:
    """Return where a loop leads."""
    return {goal for one in loop.body for goal in blocks[one].successors} - loop.body


def _ends(blocks: list[BasicBlock], header: int, body: frozenset[int]) -> tuple[set[int], set[int]]:
    """Return where a loop leads after the test that each iteration has last, and after the first one.

    Where none is last, ptxas makes the first the last.
    """
    out = {number: {*blocks[number].successors} - body for number in body}
    latches = [number for number in body if header in blocks[number].successors]
    if len(latches) == 1 and out[latches[0]]:
        return out[latches[0]], out[header]
    return out[header], set().union(*(out[one] for one in body.intersection(blocks[header].successors)))
