# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A launch to be modelled, and how often its machine code executes."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from heapq import heappop, heappush
from itertools import islice, repeat

from msgspec import Struct

from gpuprof.devices.device import Device
from gpuprof.errors import GpuprofError
from gpuprof.executor import Loop, loops_of, predecessors, reached
from gpuprof.machine_code.sass import Block, MachineCode
from gpuprof.sm_model.control_words import ControlWord
from gpuprof.sm_model.traffic import Traffic

#: SMs of each group (GPC) of a chip with so many: an H100 has eight groups of up to 18, and clusters of eight
#: lie on 120 of its 132 SMs (NVIDIA/cutlass issue 1921).
_GROUPS = {132: (18, 18, 18, 16, 16, 16, 16, 14)}


class NotModelled(GpuprofError):
    """Why a case has no modelled time."""


class PlayedLaunch(Struct, frozen=True, dict=True):
    """A launch to be modelled.

    Args:
        code: Machine code.
        words: Its control words, in the order of addresses.
        times: How often warps of the whole grid execute each block of it: at least and at most.
        traffic: Of memory instructions, by their addresses.
        blocks: Of the grid.
        warps: Of a block.
        resident: Blocks that an SM holds.
        sources: The source line of each line of the PTX text.
        handed_on: How many blocks at most have, one after the other, waited for what the one before wrote.
        shared_bytes: Of a block.
        cluster: Blocks that lie side by side in one group of SMs.
        busiest: Of the SM that does most, its shares of what warps execute, and of passes through L1.
        left_out: Of each warp of a block, the blocks of machine code that it never comes to; empty where all
            may come to all.
        work: What each block does, relative to others, in the order in which they begin; empty if not known.
        longest: What the warp does that does most, relative to a mean one.
    """

    code: MachineCode
    words: Sequence[ControlWord]
    times: Sequence[tuple[float, float]]
    traffic: Mapping[int, Traffic]
    blocks: int
    warps: int
    resident: int
    sources: Mapping[int, int]
    handed_on: int = 0
    shared_bytes: int = 0
    cluster: int = 1
    busiest: tuple[float, float] = (0.0, 0.0)
    left_out: Sequence[frozenset[int]] = ()
    work: Sequence[float] = ()
    longest: float = 1.0

    def most_blocks(self, device: Device) -> int:
        """Return how many of its blocks the SM has that has most."""
        groups = _GROUPS.get(device.sm_count, (device.sm_count,))
        return math.ceil(self.blocks / sum(sms - sms % self.cluster for sms in groups))

    def unevenly(self, device: Device, together: float, alone: float) -> float:
        """Return how much longer its blocks take than if all did as much, at least 1.

        They begin in order on the SM that has room first, and those of an SM share its speed.

        Args:
            device: With its SMs.
            together: Cycles of an SM for a mean block among others.
            alone: Those that it takes by itself.
        """
        mean = sum(self.work) / len(self.work)
        sms = device.sm_count

        def last(work: Iterator[float]) -> float:
            # Of each SM: how far it has come, in work of each of its blocks, and where these end.
            come, ends = [0.0] * sms, [list[float]() for _ in range(sms)]
            for number, each in enumerate(islice(work, self.resident * sms)):
                heappush(ends[number % sms], each)
            events, now = [(0.0, sm) for sm in range(sms)], 0.0
            while events:
                now, sm = heappop(events)
                held = ends[sm]
                if now:
                    come[sm] = heappop(held)
                    for each in islice(work, 1):
                        heappush(held, come[sm] + each)
                if held:
                    cycles = (held[0] - come[sm]) * max(alone, len(held) * together)
                    heappush(events, (now + cycles, sm))
            return now

        return max(1.0, last(each / mean for each in self.work) / last(repeat(1.0, len(self.work))))

    @cached_property
    def rare(self) -> set[int]:
        """The blocks that are only come to by calls which may never happen: slow ways of a division."""
        return _rare(self.code.blocks, self.times)


def _rare(blocks: Sequence[Block], times: Sequence[tuple[float, float]]) -> set[int]:
    rare: set[int] = set()
    for number, (block, (low, _)) in enumerate(zip(blocks, times, strict=True)):
        if block.callee is not None and not low:
            rare.add(number)
            rare |= reached({block.callee} - rare, lambda one: blocks[one].successors)
    before = predecessors(blocks)
    while new := {
        one for one, comers in enumerate(before) if one not in rare and comers and rare.issuperset(comers)
    }:
        rare |= new
    return rare


def _leaving(
    one: int, after: int, launch: PlayedLaunch, loops: Mapping[int, Loop], times: Sequence[float]
) -> float:
    """Return how often a block is left for another, where others come to it too, or repeat loops; else 0."""
    blocks, left = launch.code.blocks, times[one]
    for other in {*blocks[one].successors} - launch.rare - {after}:
        around = reached({other}, lambda each: {*blocks[each].successors} - {after})
        if one not in around and not any(blocks[each].leaves for each in around):
            # As what waits in a loop does: who goes there comes later.
            left -= sum(times[each] for each in around if after in blocks[each].successors)
            continue
        loop = loops.get(other)
        if loop is None or one not in loop.body or after in loop.body:
            return 0.0
        left = min(left, sum(times[entry] for entry in loop.entries) or left)
    return left


def usual_times(launch: PlayedLaunch) -> list[float]:
    """Return how often each block executes, by all warps: ways beside slow ones that are not gone are."""
    rare, blocks = launch.rare, launch.code.blocks
    times = [low for low, _ in launch.times]
    before, loops = predecessors(blocks), loops_of(blocks)
    for number, (low, high) in enumerate(launch.times):
        if not low and high and number not in rare:
            coming = [
                _leaving(one, number, launch, loops, times) for one in before[number] if one not in rare
            ]
            times[number] = max(low, min(high, sum(coming)))
    # Who has come to no other end has come to the last one.
    ends = [
        number
        for number, block in enumerate(blocks)
        if block.leaves and not block.successors and number not in rare
    ]
    if len(ends) == 1 and not times[ends[0]]:
        times[ends[0]] = min(launch.times[ends[0]][1], float(launch.blocks * launch.warps))
    return times
