# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Count on the executor what a GPU measures, in processes of their own, while the GPU measures it.

A measured case is complete without its counts: they are added when they arrive, and a count that fails or
takes too long costs the counts only. What is counted needs no time that was measured: it begins at once, and
of a case that then goes wrong nobody is told.
"""

from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec import Struct

from gpuprof import timeline
from gpuprof.backends.base import NOT_COUNTED, Findings
from gpuprof.bounds import with_bounds, without_impossible_time
from gpuprof.devices.device import Device
from gpuprof.errors import CaseSkipped
from gpuprof.machine import available_memory_bytes, usable_cores
from gpuprof.measure.case import Case, lines_of_another, resolve
from gpuprof.measure.pool import Pool
from gpuprof.measure.process import ExecutorProcess
from gpuprof.measure.protocol import Count, Open
from gpuprof.measure.request import worth_starting
from gpuprof.records import replace
from gpuprof.results import Measurement

#: The longest that counting one case may take.
MOST_SECONDS = 10.0
#: What each process takes: its own, and its arrays as inputs, device memory and marks.
_PROCESS_BYTES, _COPIES = 1 << 30, 3

#: Told what came of a case, by the index that it was given.
OnCase = Callable[[int, Measurement], None]


class _Job(Struct, eq=False):
    """A case to count, what was measured of it, and what came of counting it."""

    case: Case
    measured: list[tuple[int, Measurement]]
    answer: Findings | None = None


class Counting:
    """Counts measured cases behind the back of those that are measured next.

    Args:
        on_counted: Told of what was measured when it is counted; it may be set later, before the first case.
        expected: What will be measured, in order: counting it begins at once.
    """

    def __init__(
        self,
        open_request: Open,
        device: Device,
        on_counted: OnCase = lambda index, measurement: None,
        seconds: float = MOST_SECONDS,
        cards: int = 1,
        expected: Sequence[Case] = (),
    ) -> None:
        self._device = device
        request = replace(open_request, executes=device)
        self.on_counted = on_counted
        self._seconds = seconds
        self._jobs: dict[Hashable, _Job] = {}
        self.left = 0  # cases that were measured and are not counted yet
        seats = [ExecutorProcess(request) for _ in range(processes(expected, cards))]
        self._pool = Pool(seats, ahead=True)
        self.paused = self._pool.paused
        self.close = partial(self._pool.close, wait=False)
        # What takes long, as a ladder's last rungs do, does not begin when others have nothing left to do.
        for case in sorted(expected, key=lambda case: case.problem.array_bytes)[::-1]:
            if not case.is_reference:
                with suppress(CaseSkipped):
                    self._job(case)

    def add(self, index: int, case: Case, measurement: Measurement) -> None:
        """Tell what a measured case counts; once for all kernels that choose the same."""
        with self._pool.changed:
            job = self._job(case)
            if job.answer is None:
                self.left += not job.measured
                job.measured.append((index, measurement))
                return
        self._tell(job.answer, index, measurement)

    def _job(self, case: Case) -> _Job:
        """That of a case, or of another one that runs the same."""
        case, kernel = resolve(replace(case, device=0), self._device)
        key = case.name, kernel.source_hash, case.problem, case.block, tuple(sorted(case.params.items()))
        job = self._jobs.get(key)
        if job is None or job.case != case:
            job = self._jobs[key] = _Job(case, [])
            self._pool.add(case.name, partial(self._count, job))
        return job

    def wait(self) -> None:
        """Wait until all that was added is counted.

        Raises:
            KeyboardInterrupt: The run was asked to end.
            OutputError: What was counted could not be kept.
        """
        self._pool.wait(lambda: self.left > 0)

    def _count(self, job: _Job, process: ExecutorProcess) -> None:
        case = job.case
        with timeline.span("count", f"{case.name} {case.problem.label}"):
            answer = findings_in(process.answer(Count(case), self._seconds))
        with self._pool.changed:
            job.answer = answer
        try:
            for index, measurement in job.measured:
                self._tell(answer, index, measurement)
        finally:
            with self._pool.changed:
                self.left -= bool(job.measured)
                self._pool.changed.notify_all()

    def _tell(self, answer: Findings, index: int, measurement: Measurement) -> None:
        if not self._pool.closed:
            self.on_counted(index, with_counts(measurement, answer, self._device))


def findings_in(answer: Findings | str) -> Findings:
    """What a process answers that was to count a case, or why it does not."""
    if isinstance(answer, str):
        return Findings("skipped", reason=f"the executor did not count it: {answer}")
    return answer


def is_uncounted(measurement: Measurement) -> bool:
    """Whether a case that a GPU measured well still waits for its counts, or for why it has none."""
    return not measurement.executor_counters and measurement.lines_reason == NOT_COUNTED


def processes(expected: Sequence[Case], cards: int) -> int:
    """How many processes count: the one that measures wants a core of its own, and memory has an end."""
    largest = max((case.problem.array_bytes for case in expected), default=0)
    room = available_memory_bytes() // (_PROCESS_BYTES + _COPIES * largest)
    kernels = sum(not case.is_reference for case in expected)
    return max(1, min(worth_starting(kernels), usable_cores() // cards - 1, room // cards))


def with_counts(measurement: Measurement, answer: Findings, device: Device) -> Measurement:
    """What was measured or compiled, with what the executor counted of it, or why it counted nothing."""
    remarks = tuple(dict.fromkeys((*measurement.remarks, *answer.remarks)))
    if why := answer.reason:
        return replace(measurement, lines_reason=why, bounds_reason=why, model_reason=why, remarks=remarks)
    counted = replace(
        measurement,
        executor_counters=answer.counters,
        lines=answer.lines,
        lines_reason=answer.lines_reason,
        model=answer.model,
        model_reason=answer.model_reason,
        remarks=remarks,
    )
    if measurement.chosen:
        counted = lines_of_another(counted, measurement.chosen)
    return without_impossible_time(with_bounds(counted, device))


def counted_as(measurement: Measurement, known: Measurement, device: Device) -> Measurement:
    """What was measured, with what was counted of the same case before, or why nothing was."""
    counted = ("executor_counters", "lines", "lines_reason", "bounds_reason", "model", "model_reason")
    changes: dict[str, Any] = {name: getattr(known, name) for name in counted}
    remarks = tuple(dict.fromkeys((*measurement.remarks, *known.remarks)))
    case = replace(measurement, remarks=remarks, **changes)
    return with_bounds(case, device) if case.executor_counters else case
