# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Count on the executor what a GPU measures, in processes of their own, while the GPU measures it.

A measured case is complete without its counts: they are added when they arrive, and a count that fails or
takes too long costs the counts only. What is counted needs no time that was measured: it begins at once, and
of a case that then goes wrong nobody is told.
"""

import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from gpuprof import signals, timeline
from gpuprof.backends.base import NOT_COUNTED
from gpuprof.bounds import with_bounds, without_impossible_time
from gpuprof.errors import CaseSkipped, GpuprofError
from gpuprof.machine import available_memory_bytes, usable_cores
from gpuprof.measure.case import Case, lines_of_another, resolve
from gpuprof.measure.process import WorkerDied, WorkerProcess, WorkerTimeout, worth_another_try
from gpuprof.measure.protocol import Count, Counted, Open, Opened, OpenExecutor
from gpuprof.results import Measurement

#: The longest that counting one case may take.
MOST_SECONDS = 10.0
#: Processes side by side, and what each takes: its own, and its arrays as inputs, device memory and marks.
_MOST_LANES = 12
_LANE_BYTES, _COPIES = 1 << 30, 3
_POLL_S = 0.1
_FAREWELL_S = 5.0

OnCounted = Callable[[int, Measurement], None]


@dataclass(eq=False, slots=True)
class _Job:
    """A case to count, what was measured of it, and what came of counting it, or why nothing did."""

    case: Case
    measured: list[tuple[int, Measurement]]
    answer: Counted | str | None = None


class Counting:
    """Counts measured cases behind the back of those that are measured next.

    Args:
        cards: How many cards are measured at the same time, each with processes that count for it.
        expected: What will be measured, in order: counting it begins at once.
    """

    def __init__(
        self,
        open_request: Open,
        opened: Opened,
        on_counted: OnCounted,
        seconds: float = MOST_SECONDS,
        cards: int = 1,
        expected: Sequence[Case] = (),
    ) -> None:
        self._request = OpenExecutor(
            opened.device, open_request.seed, open_request.given_arrays, open_request.sim_blocks
        )
        self._on_counted = on_counted
        self._seconds = seconds
        self._changed = threading.Condition()
        self._jobs: dict[Hashable, _Job] = {}
        self._waiting: list[_Job] = []
        self._decoded_by: dict[str, int] = {}
        self._open = 0  # cases that were measured and are not counted yet
        self._paused = self._closed = False
        self._error: GpuprofError | None = None
        self._workers: set[WorkerProcess] = set()
        for case in expected:
            if not case.is_reference:
                with suppress(CaseSkipped):
                    self._job(case)
        # A worker process ends with the thread that started it: these live as long as this.
        self._busy = _lanes(expected, cards)
        self._threads = [
            threading.Thread(target=self._serve, args=(lane,), daemon=True) for lane in range(self._busy)
        ]
        for thread in self._threads:
            thread.start()

    def add(self, index: int, case: Case, measurement: Measurement) -> None:
        """Tell what a measured case counts; once for all kernels that choose the same."""
        with self._changed:
            job = self._job(case)
            if job.answer is None:
                self._open += not job.measured
                job.measured.append((index, measurement))
                self._changed.notify_all()
                return
        self._tell(job.answer, index, measurement)

    def _job(self, case: Case) -> _Job:
        """That of a case, or of another one that runs the same."""
        case, kernel = resolve(case, self._request.device)
        key = case.name, kernel.source_hash, case.problem, case.block, tuple(sorted(case.params.items()))
        job = self._jobs.get(key)
        if job is None or job.case != case:
            job = self._jobs[key] = _Job(case, [])
            self._waiting.append(job)
        return job

    @property
    def left(self) -> int:
        """How many of the cases that were measured are not counted yet."""
        return self._open

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Count nothing within the block; what is being counted ends first."""
        try:
            with self._changed:
                self._paused = True
                while self._busy and not self._closed:
                    signals.check()
                    self._changed.wait(_POLL_S)
            yield
        finally:
            with self._changed:
                self._paused = False
                self._changed.notify_all()

    def wait(self) -> None:
        """Wait until all that was added is counted.

        Raises:
            KeyboardInterrupt: The run was asked to end.
            OutputError: What was counted could not be kept.
        """
        with self._changed:
            while self._open and not self._closed:
                signals.check()
                self._changed.wait(_POLL_S)
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """End all processes; what is not counted stays uncounted."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for worker in tuple(self._workers):
            worker.close()
        for thread in self._threads:
            thread.join(_FAREWELL_S)

    def _serve(self, lane: int) -> None:
        worker: WorkerProcess | None = None
        with suppress(WorkerDied, GpuprofError, KeyboardInterrupt):  # told of the case that needs one
            worker = self._opened()
        while (job := self._next(lane)) is not None:
            answer, worker = self._count(job.case, worker)
            with self._changed:
                job.answer = answer
            for index, measurement in job.measured:
                self._tell(answer, index, measurement)
            with self._changed:
                self._open -= bool(job.measured)
                self._changed.notify_all()
        if worker is not None:
            self._discard(worker)

    def _next(self, lane: int) -> _Job | None:
        """The next case, if possible of a kernel that no other process has decoded; None at the end."""
        with self._changed:
            self._busy -= 1
            self._changed.notify_all()
            while not self._closed and (self._paused or not self._waiting):
                self._changed.wait()
            if self._closed:
                return None
            own = (job for job in self._waiting if self._decoded_by.get(job.case.name, lane) == lane)
            job = next(own, self._waiting[0])
            self._waiting.remove(job)
            self._decoded_by.setdefault(job.case.name, lane)
            self._busy += 1
            return job

    def _tell(self, answer: Counted | str, index: int, measurement: Measurement) -> None:
        if self._closed:
            return
        if isinstance(answer, str):
            counted = replace(measurement, lines_reason=answer, bounds_reason=answer)
        else:
            counted = _counted(measurement, answer, self._request)
        try:
            self._on_counted(index, counted)
        except GpuprofError as error:
            self._error = error

    def _opened(self) -> WorkerProcess:
        worker = WorkerProcess(self._request)
        self._workers.add(worker)
        if self._closed:
            self._discard(worker)
            raise WorkerDied("the run ends")
        return worker

    def _count(
        self, case: Case, worker: WorkerProcess | None, tries: int = 1
    ) -> tuple[Counted | str, WorkerProcess | None]:
        """What the executor counted, or why it did not; and the process, where it lives."""
        try:
            worker = worker or self._opened()
            with timeline.span("count", f"{case.name} {case.problem.label}"):
                answer: Counted = worker.ask(Count(case), self._seconds)
        except WorkerTimeout:
            self._discard(worker)
            return f"counting it on the executor takes more than {self._seconds:g} s", None
        except (WorkerDied, GpuprofError, KeyboardInterrupt) as error:
            self._discard(worker)
            if worth_another_try(error, tries) and not self._closed:
                return self._count(case, None, tries + 1)
            return f"the process that counted it was lost: {error}", None
        return answer.reason or answer, worker

    def _discard(self, worker: WorkerProcess | None) -> None:
        if worker is not None:
            self._workers.discard(worker)
            with suppress(WorkerDied):
                worker.close()


def is_uncounted(measurement: Measurement) -> bool:
    """Whether a case that a GPU measured well still waits for its counts, or for why it has none."""
    return not measurement.executor_counters and measurement.lines_reason == NOT_COUNTED


def _lanes(expected: Sequence[Case], cards: int) -> int:
    """How many processes count: the one that measures wants a core of its own, and memory has an end."""
    largest = max((case.problem.array_bytes for case in expected), default=0)
    room = available_memory_bytes() // (_LANE_BYTES + _COPIES * largest)
    kernels = sum(not case.is_reference for case in expected)
    return max(1, min(_MOST_LANES, kernels, usable_cores() // cards - 1, room // cards))


def _counted(measurement: Measurement, answer: Counted, request: OpenExecutor) -> Measurement:
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
