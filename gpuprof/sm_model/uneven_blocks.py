# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Blocks that do not all do as much, on the SMs that they begin on one after the other."""

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import islice, repeat

from gpuprof.devices.device import Device
from gpuprof.sm_model.played_launch import PlayedLaunch


def unevenly(launch: PlayedLaunch, device: Device, together: float, alone: float) -> float:
    """Return how much longer blocks take than if all did as much, at least 1.

    They begin in order on the SM that has room first, and those of an SM share its speed.

    Args:
        launch: That they are of.
        device: With its SMs.
        together: Cycles of an SM for a mean block among others.
        alone: Those that it takes by itself.
    """
    mean = sum(launch.work) / len(launch.work)
    sms = device.sm_count

    def last(work: Iterator[float]) -> float:
        # Of each SM: how far it has come, in work of each of its blocks, and where these end.
        come, ends = [0.0] * sms, [list[float]() for _ in range(sms)]
        for number, each in enumerate(islice(work, launch.resident * sms)):
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

    return max(1.0, last(each / mean for each in launch.work) / last(repeat(1.0, len(launch.work))))
