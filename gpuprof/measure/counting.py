# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Count on the executor what a GPU has measured, in processes of their own, while the GPU goes on measuring.

A measured case is complete without its counts: they are added when they arrive, and a count that fails or
takes too long costs the counts only.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from queue import SimpleQueue

from gpuprof import signals, timeline
from gpuprof.backends.base import NOT_COUNTED
from gpuprof.bounds import with_bounds, without_impossible_time
from gpuprof.errors import GpuprofError
from gpuprof.machine import usable_cores
from gpuprof.measure.case import Case, lines_of_another
from gpuprof.measure.process import WorkerDied, WorkerProcess, WorkerTimeout, worth_another_try
from gpuprof.measure.protocol import Count, Counted, Open, Opened, OpenExecutor
from gpuprof.results import Measurement

#: The longest that counting one case may take.
MOST_SECONDS = 10.0
#: Processes side by side: the one that measures wants a core of its own, and memory is not theirs alone.
_MOST_LANES = 3
_POLL_S = 0.1
_FAREWELL_S = 5.0

OnCounted = Callable[[int, Measurement], None]


@dataclass(frozen=True, slots=True)
class _Job:
    index: int
    case: Case
    measurement: Measurement


class Counting:
    """Counts measured cases behind the back of those that are measured next.

    Args:
        open_request: What the run's workers open.
        opened: What they opened.
        on_counted: Called with a case's index and its measurement, counts and bounds included.
        seconds: The longest that one case may take.
        cards: How many cards are measured at the same time, each with processes that count for it.
    """

    def __init__(
        self,
        open_request: Open,
        opened: Opened,
        on_counted: OnCounted,
        seconds: float = MOST_SECONDS,
        cards: int = 1,
    ) -> None:
        self._request = OpenExecutor(
            opened.device, open_request.seed, open_request.given_arrays, open_request.sim_blocks
        )
        self._on_counted = on_counted
        self._seconds = seconds
        self._cards = cards
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._idle = threading.Condition()
        self._open = 0
        self._closed = False
        self._error: GpuprofError | None = None
        self._workers: set[WorkerProcess] = set()
        self._threads: list[threading.Thread] = []

    def add(self, index: int, case: Case, measurement: Measurement) -> None:
        """Count a case when there is a process to do it."""
        with self._idle:
            self._open += 1
        if len(self._threads) < max(1, min(_MOST_LANES, usable_cores() // self._cards - 1)):
            self._threads.append(threading.Thread(target=self._serve, daemon=True))
            self._threads[-1].start()
        self._jobs.put(_Job(index, case, measurement))

    def wait(self) -> None:
        """Wait until all that was added is counted.

        Raises:
            KeyboardInterrupt: The run was asked to end.
            OutputError: What was counted could not be kept.
        """
        with self._idle:
            while self._open and not self._closed:
                signals.check()
                self._idle.wait(_POLL_S)
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """End all processes; what is not counted stays uncounted."""
        self._closed = True
        for worker in tuple(self._workers):
            worker.close()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join(_FAREWELL_S)

    def _serve(self) -> None:
        worker: WorkerProcess | None = None
        while not self._closed:
            job = self._jobs.get()
            if job is None:
                break
            measurement, worker = self._count(job, worker)
            if not self._closed:
                try:
                    self._on_counted(job.index, measurement)
                except GpuprofError as error:
                    self._error = error
            with self._idle:
                self._open -= 1
                self._idle.notify_all()
        if worker is not None:
            self._discard(worker)

    def _count(
        self, job: _Job, worker: WorkerProcess | None, tries: int = 1
    ) -> tuple[Measurement, WorkerProcess | None]:
        """The case with its counts, or why it has none; and the process, where it lives."""
        try:
            if worker is None:
                worker = WorkerProcess(self._request)
                self._workers.add(worker)
            with timeline.span("count", f"{job.case.name} {job.case.problem.label}"):
                answer: Counted = worker.ask(Count(job.case), self._seconds)
        except WorkerTimeout:
            self._discard(worker)
            why = f"counting it on the executor takes more than {self._seconds:g} s"
            return _uncounted(job.measurement, why), None
        except (WorkerDied, GpuprofError, KeyboardInterrupt) as error:
            self._discard(worker)
            if worth_another_try(error, tries) and not self._closed:
                return self._count(job, None, tries + 1)
            return _uncounted(job.measurement, f"the process that counted it was lost: {error}"), None
        return _counted(job.measurement, answer, self._request), worker

    def _discard(self, worker: WorkerProcess | None) -> None:
        if worker is not None:
            self._workers.discard(worker)
            with suppress(WorkerDied):
                worker.close()


def is_uncounted(measurement: Measurement) -> bool:
    """Whether a case that a GPU measured well still waits for its counts, or for why it has none."""
    return not measurement.executor_counters and measurement.lines_reason == NOT_COUNTED


def _uncounted(measurement: Measurement, why: str) -> Measurement:
    return replace(measurement, lines_reason=why, bounds_reason=why)


def _counted(measurement: Measurement, answer: Counted, request: OpenExecutor) -> Measurement:
    if answer.reason:
        return _uncounted(measurement, answer.reason)
    counted = replace(
        measurement,
        executor_counters=answer.counters,
        lines=answer.lines,
        lines_reason=answer.lines_reason,
        remarks=tuple(dict.fromkeys((*measurement.remarks, *answer.remarks))),
    )
    if measurement.chosen:
        counted = lines_of_another(counted, measurement.chosen)
    return without_impossible_time(with_bounds(counted, request.device))
