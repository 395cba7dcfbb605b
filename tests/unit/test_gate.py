# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A stream is held back while a batch is queued, unless that cannot come through."""

import ctypes
from collections import Counter
from itertools import count
from types import SimpleNamespace

import pytest

from gpuprof.backends.gpu import timer as timing
from gpuprof.backends.gpu.timer import Around, EventTimer

GOOD = SimpleNamespace(value=0)


@pytest.fixture
def closed(monkeypatch):
    """Values that the stream was told to wait for, with a driver whose events are 5 us apart."""
    pinned, closed = ctypes.create_string_buffer(64), []
    numbers = count()
    api = SimpleNamespace(
        CU_MEMHOSTALLOC_DEVICEMAP=2,
        CUstreamWaitValue_flags=SimpleNamespace(CU_STREAM_WAIT_VALUE_GEQ=0),
        CUevent_flags=SimpleNamespace(CU_EVENT_DEFAULT=0),
        cuMemHostAlloc=lambda nbytes, flags: (GOOD, ctypes.addressof(pinned)),
        cuMemHostGetDevicePointer=lambda host, flags: (GOOD, host),
        cuStreamWaitValue32=lambda stream, address, value, flags: (closed.append(value), (GOOD,))[1],
        cuStreamSynchronize=lambda stream: (GOOD,),
        cuEventCreate=lambda flags: (GOOD, next(numbers)),
        cuEventRecord=lambda event, stream: (GOOD,),
        cuEventElapsedTime=lambda start, end: (GOOD, 0.005),
    )
    monkeypatch.setattr(timing, "driver", lambda: api)
    return closed


def nothing():
    pass


def test_batch_is_held_back(closed):
    timer = EventTimer("stream", nothing)
    timer.calibrate()
    assert timer.pair_us == 5.0
    before = len(closed)
    assert len(timer.cold(nothing, 3, settle=2)) == 3
    assert len(timer.warm(nothing, 3, group=4)) == 3
    assert len(closed) > before + 1
    assert timer.ungated == ""


@pytest.mark.parametrize("launches", [1, 100, 400, 960, 5000])
def test_no_more_is_queued_than_a_driver_takes(closed, launches):
    queued = 0

    def launch():
        nonlocal queued
        queued += launches

    timer = EventTimer("stream", nothing)
    samples = timer.max_batch(launches)
    timer.cold(launch, samples, settle=2, launches=launches)
    assert samples * launches <= queued <= (samples + 2) * launches
    assert bool(closed) == (not timer.ungated)
    assert not closed or queued + 3 * samples + 2 <= 1020
    assert bool(closed) == (launches < 900)


@pytest.mark.parametrize("beside", [0, 1, 2])
def test_launches_are_timed_at_each_of_four_places_in_the_queue(closed, beside):
    queued = []
    timer = EventTimer("stream", lambda: queued.append("flush"))
    before = Around(beside, lambda: queued.extend(["beside"] * beside), nothing)
    timer.cold(lambda: queued.append("timed"), 64, settle=0, around=before)
    places = Counter(number % 4 for number, what in enumerate(queued) if what == "timed")
    assert places == dict.fromkeys(range(4), 16)
