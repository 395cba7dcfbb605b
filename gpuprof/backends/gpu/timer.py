# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Event timing of launches that are already queued.

The stream waits at a gate while the host queues a whole batch: flush, event, launch, event, and so on. When
the gate opens the GPU runs the batch without waiting for the host: no launch gap lies inside an interval.
Nothing is queued there that may wait for the device: no allocation or release, no loading, no synchronous
copy, no first launch of a function, and no more commands than the driver takes. Where something waits all the
same, the gate opens by itself, and the case is measured without one.

Events take some microseconds themselves, more on some machines than on others: as much as an interval around
one empty kernel is longer than each of many in a row. That is taken off each interval, and what is left is
within 0.3 us of Nsight Compute's time of the same kernels (docs/how-it-measures.md). Two events with nothing
between them tell less: they are 1.3 us apart on a machine with one H200 and 2.9 us on one with two, and times
from there differ by a microsecond. Other clocks agree less: `%globaltimer` read by kernels around, graphs.
"""

import ctypes
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from statistics import fmean
from threading import Thread
from time import monotonic, sleep
from typing import Any, NamedTuple

from gpuprof.backends.gpu.context import Arguments, DeviceBuffer, DeviceCode
from gpuprof.backends.gpu.driver import DriverError, call, driver

#: Samples queued behind one closed gate.
_BATCH = 64
#: Of launches that follow each other every fourth takes up to a microsecond more than others, and one less
#: (H200): one is put in where a case would be timed at the same of four places each time.
_PLACES = 4
#: Most commands behind one gate where a sample takes several launches: those, a flush and two events.
_COMMANDS = 512
#: More are not queued behind a gate: the driver blocks at the 1,021st (H100, driver 580).
_MOST_COMMANDS = 960
#: Batches of empty kernels that are averaged: an event ticks 32 ns, their mean does much finer.
_EMPTY_BATCHES = 4
#: No time is shorter than a tick.
_TICK_US = 0.032
#: Longest a gate stays closed. Queueing a batch takes milliseconds; longer means that a driver call waits for
#: the device behind the gate, and only opening it lets both go on. That takes bindings which do not hold
#: Python's lock while they wait: 12.9.1 and later.
_GATE_SECONDS = 1.0
#: How often that is looked after, by one thread: where compilers keep all cores busy, to start one for each
#: batch takes longer than the batch.
_POLL_S = 0.1

_UNAVAILABLE = "the driver cannot block a stream"

Launch = Callable[[], None]


class Around(NamedTuple):
    """What is queued around each cold launch, outside its interval."""

    commands: int
    before: Launch
    after: Launch


class LaunchGate:
    """Holds a stream back until the host opens it, with a stream memory operation on pinned host memory."""

    def __init__(self, stream: Any) -> None:
        api = driver()
        self._stream = stream
        self._round = 0
        flags = api.CU_MEMHOSTALLOC_DEVICEMAP
        host = int(call("allocating pinned memory", api.cuMemHostAlloc(64, flags)))
        self._flag = ctypes.c_uint32.from_address(host)
        self._flag.value = 0
        self._address = int(call("mapping pinned memory", api.cuMemHostGetDevicePointer(host, 0)))
        self.available = True
        #: Whether it opened by itself when it was closed last.
        self.expired = False
        self._opens_at = inf
        Thread(target=self._watch, daemon=True).start()

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Hold back what the body queues until all of it is queued, a second at most."""
        self.expired = False
        self._close()
        self._opens_at = monotonic() + _GATE_SECONDS
        try:
            yield
        finally:
            self._opens_at = inf
            self._open()

    def _close(self) -> None:
        """Queue the wait; without the driver's support the gate stays open and `available` says so."""
        if not self.available:
            return
        api = driver()
        self._round += 1
        condition = api.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_GEQ
        try:
            call(
                "queueing a wait",
                api.cuStreamWaitValue32(self._stream, self._address, self._round, condition),
            )
        except DriverError as error:
            if error.fatal:
                raise
            self.available = False

    def _watch(self) -> None:
        while True:
            sleep(_POLL_S)
            if monotonic() >= self._opens_at:
                self.expired, self._opens_at = True, inf
                self._open()

    def _open(self) -> None:
        self._flag.value = self._round


class EventTimer:
    """Times launches on one stream.

    Attributes:
        ungated: Why launches of this case are not held back; empty where they are.
        floor_us: What it gives an empty kernel, since `calibrate`: no time can be told from less.
    """

    def __init__(self, stream: Any, flush: Launch) -> None:
        api = driver()
        self._stream = stream
        self._flush = flush
        self._pair_us = self.floor_us = 0.0
        self.gate = LaunchGate(stream)
        self.ungated = ""
        flags = api.CUevent_flags.CU_EVENT_DEFAULT
        self._events = [call("creating an event", api.cuEventCreate(flags)) for _ in range(2 * _BATCH)]

    @property
    def pair_us(self) -> float:
        """What events take themselves in each interval.

        0 before `calibrate`, and where launches are not gated, since intervals are then the host's.
        """
        return 0.0 if self.ungated else self._pair_us

    def calibrate(self, empty: Launch) -> None:
        """Measure what events take by an empty kernel, alone and in a row; it and the flush must have run."""
        times: list[float] = []
        for _ in range(_EMPTY_BATCHES):
            self.reset()
            batch = self.cold(empty, _BATCH, settle=1)
            times += [] if self.ungated else batch
        # Nothing of that can wait for the device where a stream can be held back at all.
        self.gate.available = bool(times)
        self.reset()
        times = sorted(times or batch)
        quarter = len(times) // 4
        alone = fmean(times[quarter:-quarter])
        if self.gate.available:
            in_a_row = fmean(self.warm(empty, _EMPTY_BATCHES, group=_BATCH))
            # A share of the events is in each of those in a row.
            self._pair_us = max(0.0, round((alone - in_a_row) * _BATCH / (_BATCH - 1), 4))
        self.floor_us = max(round(alone - self._pair_us, 4), _TICK_US)

    def reset(self) -> None:
        """Hold launches back again, where the driver can."""
        self.ungated = "" if self.gate.available else _UNAVAILABLE

    def max_batch(self, launches: int, around: Around | None = None) -> int:
        """Most samples behind one gate, where each takes so many launches and what is queued around them."""
        return max(1, min(_BATCH, _COMMANDS // (launches + 3 + (around.commands if around else 0))))

    def cold(
        self,
        launch: Launch,
        samples: int,
        *,
        settle: int,
        launches: int = 1,
        around: Around | None = None,
    ) -> list[float]:
        """Microseconds of a case, each time after a flush of the L2 cache.

        Args:
            samples: How many to take, at most `max_batch`.
            settle: Untimed ones in front, as many as fit, which bring instruction cache and clocks up.
        """
        commands = samples * (launches + 3 + (around.commands if around else 0)) + samples // _PLACES
        settle = max(0, min(settle, (_MOST_COMMANDS - commands) // (launches + 1)))

        def queue() -> None:
            for _ in range(settle):
                self._flush()
                launch()
            for i in range(samples):
                if around is not None:
                    around.before()
                for _ in range(2 if i % _PLACES == _PLACES - 1 else 1):
                    self._flush()
                self._record(2 * i)
                launch()
                self._record(2 * i + 1)
                if around is not None:
                    around.after()

        self._queue(settle * (launches + 1) + commands, queue)
        return self._intervals(samples)

    def warm(
        self,
        launch: Launch,
        samples: int,
        *,
        group: int,
        launches: int = 1,
        settle: int = 1,
        around: Around | None = None,
    ) -> list[float]:
        """Microseconds of a case in groups back to back.

        Args:
            samples: How many groups to time, at most `max_batch`.
            group: Times the case runs in each group; each sample is their mean.
        """
        times: list[float] = []
        beside = around.commands if around else 0
        per_gate = max(1, min(samples, 4 * _BATCH // (group * launches + beside)))
        while len(times) < samples:
            count = min(per_gate, samples - len(times))

            def queue(count: int = count) -> None:
                for _ in range(settle):
                    launch()
                for i in range(count):
                    if around is not None:
                        around.before()
                    self._record(2 * i)
                    for _ in range(group):
                        launch()
                    self._record(2 * i + 1)
                    if around is not None:
                        around.after()

            self._queue(settle * launches + count * (group * launches + beside + 2), queue)
            times += [interval / group for interval in self._intervals(count)]
        return times

    def _queue(self, commands: int, queue: Callable[[], None]) -> None:
        """Queue a batch behind the gate, or again without one where it does not come through."""
        if not self.ungated and commands > _MOST_COMMANDS:
            self.ungated = f"{commands:,} commands are more than the driver queues"
        if not self.ungated:
            with self.gate.closed():
                queue()
            if not self.gate.available:
                self.ungated = _UNAVAILABLE
            if not self.gate.expired:
                return
            self.ungated = f"the driver did not queue them within {_GATE_SECONDS:g} s"
            call("waiting for the kernels", driver().cuStreamSynchronize(self._stream))
        queue()

    def _record(self, index: int) -> None:
        result = driver().cuEventRecord(self._events[index], self._stream)
        if result[0].value:
            call("recording an event", result)

    def _intervals(self, samples: int) -> list[float]:
        """Microseconds between the events of each pair, without what those take themselves."""
        api = driver()
        call("waiting for the timed kernels", api.cuStreamSynchronize(self._stream))
        pairs = ((self._events[2 * i], self._events[2 * i + 1]) for i in range(samples))
        # Events tick in tens of nanoseconds: further digits are the conversion's.
        apart = (1e3 * call("reading an event", api.cuEventElapsedTime(start, end)) for start, end in pairs)
        return [max(round(time - self.pair_us, 4), _TICK_US) for time in apart]


#: The L2 cache of a device that tells none.
_LEAST_BYTES = 1 << 20


class L2Flush:
    """Reads twice as much as the cache holds, or `writes` it, which leaves lines to write back."""

    def __init__(self, code: DeviceCode, l2_bytes: int, stream: Any) -> None:
        self._code, self._stream, self.writes = code, stream, False
        self._buffer = DeviceBuffer(2 * max(l2_bytes, _LEAST_BYTES) // 16 * 16)
        self._sink = DeviceBuffer(16)
        self._key = secrets.randbits(63) | 1
        size: Any = ctypes.c_longlong(self._buffer.nbytes // 16)
        self._arguments = Arguments([size, self._buffer, self._sink])
        self._buffer.fill(0)
        self._clean = self._checksum()

    def queue(self) -> None:
        if self.writes:
            self._buffer.queue_fill(0, self._stream)
        else:
            self._code.queue("flush_l2", self._arguments)

    def written_to(self) -> bool:
        """Whether anybody wrote to the memory that is read; it is mended then."""
        if self._checksum() == self._clean:
            return False
        self._buffer.fill(0)
        return True

    def _checksum(self) -> int:
        return self._code.checksum(self._buffer, self._key)
