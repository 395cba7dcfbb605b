# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The ways of a block's warps through its machine code, where not all of them do the same."""

from collections import Counter
from collections.abc import Sequence

from gpuprof.executor import loops_of, predecessors, reached
from gpuprof.machine_code.sass import Block
from gpuprof.records import replace
from gpuprof.sm_model.path import (
    hottest,
    is_met_at,
    is_met_in,
    passes_of,
    played_of,
    uneven,
    usual_path,
    ways_to,
)
from gpuprof.sm_model.played_launch import PlayedLaunch

#: Warps go as many ways where some of them do what others do not.
_ROLES = 8
_COPYING = ("UBLKCP", "UTMALDG", "UTMASTG")


def paths_of(
    launch: PlayedLaunch,
    times: Sequence[float],
    block_place: float,
    together: int = 0,
) -> list[tuple[int, ...]]:
    """Return the ways of the warps of a block, which differ where not all do the same.

    Args:
        launch: That they are of.
        times: How often a warp executes each block of machine code, on average.
        block_place: The block's among all, from 0 to 1: the first ones do most.
        together: Passes to play at least of loops in which warps wait for others, that go other ways.
    """
    blocks = launch.code.blocks
    loops = loops_of(blocks)
    some = {
        number
        for number, block in enumerate(blocks)
        if times[number] and any(one.name in _COPYING for one in block.instructions)
    }
    met = {number for number, block in enumerate(blocks) if times[number] and is_met_at(block)}
    hot = hottest(blocks, times)
    if any(met & left and (hot in left or not some) for left in launch.left_out):
        return _of_each_warp(launch, times, block_place)
    ways = {*ways_to(blocks, times, some)}
    by_some, differ = uneven(blocks, times, loops, launch.warps)
    if not some and by_some:
        ways = {*ways_to(blocks, times, by_some - launch.rare)} - {*ways_to(blocks, times, met)}
    if not ways and not differ:
        return [usual_path(blocks, times, loops, together=together)]
    roles = min(_ROLES, launch.warps)
    places = [(role + 0.5) / roles for role in range(roles)]
    return [
        usual_path(blocks, times, loops, dict.fromkeys(ways, place), place, block_place, together)
        for place in places
    ]


def _of_each_warp(launch: PlayedLaunch, times: Sequence[float], block_place: float) -> list[tuple[int, ...]]:
    """As `paths_of`, of warps that do not all meet at the same places: each goes where it comes."""
    blocks, found = launch.code.blocks, dict[frozenset[int], list[tuple[int, ...]]]()
    alike = Counter(launch.left_out)
    gone = {left: _gone_through(blocks, left) for left in alike}
    coming: Counter[int] = Counter()
    for left, warps in alike.items():
        coming.update(dict.fromkeys(gone[left], warps))
    # As many passes of loops in which they wait for each other.
    meetings = {header: loop for header, loop in loops_of(blocks).items() if is_met_in(loop, blocks)}
    together = max(
        (
            played_of(header, loop, blocks, times, passes_of(header, loop, times))
            for header, loop in meetings.items()
        ),
        default=0,
    )
    for left, warps in alike.items():
        own = [
            count * launch.warps / coming[number] if number in gone[left] else 0.0
            for number, count in enumerate(times)
        ]
        found[left] = paths_of(replace(launch, left_out=(), warps=warps), own, block_place, together)
    done: Counter[frozenset[int]] = Counter()
    paths = []
    for left in launch.left_out:
        ways = found[left]
        paths.append(ways[done[left] * len(ways) // alike[left]])
        done[left] += 1
    return paths


def _gone_through(blocks: Sequence[Block], left: frozenset[int]) -> set[int]:
    """Return the blocks on ways to an end of a warp that comes to none of those that it leaves out."""
    before = predecessors(blocks)
    ends = [number for number, block in enumerate(blocks) if block.leaves and number not in left]
    live = reached(ends, lambda one: {*before[one]} - left)
    return reached({0}, lambda one: {*blocks[one].ways} & live)
