# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Worker processes on all cores that compile and count candidates, while nothing is being timed."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import Any

from gpuprof import signals
from gpuprof.bounds import with_bounds
from gpuprof.errors import GpuprofError
from gpuprof.machine import usable_cores
from gpuprof.measure.case import Case, unmeasured
from gpuprof.measure.process import WorkerDied, WorkerProcess, WorkerTimeout, worth_another_try
from gpuprof.measure.protocol import Build, Built, Count, Counted, OpenExecutor, Prepare
from gpuprof.results import Measurement

#: The longest that compiling one case may take, and counting it.
BUILD_SECONDS = 60.0
COUNT_SECONDS = 20.0
#: Memory holds so many executors besides what else runs.
_MOST_WORKERS = 32
#: Cases that a worker takes at a time to count: their machine code is disassembled together, which takes
#: little longer than that of one.
_TOGETHER = 8
_POLL_S = 0.1
_FAREWELL_S = 5.0

OnDone = Callable[[int, Measurement], None]
#: Asks a worker about one case.
_Ask = Callable[[WorkerProcess, Case], Any]


class WorkerPool:
    """Executors, one on each core."""

    def __init__(self, request: OpenExecutor, workers: int | None = None) -> None:
        self._request = request
        self._count = min(_MOST_WORKERS, workers or usable_cores())
        # A worker process ends with the thread that started it: these live as long as the pool.
        self._threads = ThreadPoolExecutor(self._count, thread_name_prefix="pool")
        self._idle: list[WorkerProcess] = []
        self._busy: set[WorkerProcess] = set()
        self._closed = False

    def __enter__(self) -> "WorkerPool":
        return self

    def __exit__(self, *_: object) -> None:
        """End all processes."""
        self._closed = True
        for worker in (*self._idle, *tuple(self._busy)):
            with suppress(WorkerDied):
                worker.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def build(self, cases: Sequence[Case], on_done: OnDone, until: float) -> int:
        """Compile cases in order and tell what they occupy.

        Args:
            cases: What to compile.
            on_done: Called with a case's index and what is known of it, from one thread at a time; its reason
                says why one cannot run.
            until: When to begin no further one, by the monotonic clock.

        Returns:
            How many were begun.

        Raises:
            KeyboardInterrupt: The run was asked to end.
        """

        def ask(worker: WorkerProcess, case: Case) -> Measurement:
            answer: Built = worker.ask(Build(case), BUILD_SECONDS)
            return answer.measurement

        def done(index: int, answer: Any) -> None:
            case = cases[index]
            if isinstance(answer, str):
                why = f"It could not be compiled: {answer}."
                answer = unmeasured(case, case.kernel, "failed", why, "it was not compiled")
            on_done(index, answer)

        return self._each(cases, ask, done, until)

    def count(self, built: Sequence[tuple[Case, Measurement]], on_done: OnDone, until: float) -> int:
        """Count cases that `build` told of, as it does: with bounds, or why they could not be counted."""

        def ask(worker: WorkerProcess, case: Case) -> Counted:
            answer: Counted = worker.ask(Count(case), COUNT_SECONDS)
            return answer

        def done(index: int, answer: Any) -> None:
            known = built[index][1]
            if isinstance(answer, Counted) and not answer.reason:
                counted = replace(known, outcome="ok", reason=None, executor_counters=answer.counters)
                on_done(index, with_bounds(counted, self._request.device))
            else:
                reason = answer.reason if isinstance(answer, Counted) else str(answer)
                on_done(index, replace(known, bounds_reason=reason))

        together = max(1, min(_TOGETHER, len(built) // (2 * self._count)))
        return self._each([case for case, _ in built], ask, done, until, together)

    def _each(
        self,
        cases: Sequence[Case],
        ask: _Ask,
        on_done: Callable[[int, Any], None],
        until: float,
        together: int = 1,
    ) -> int:
        """Ask about each case; the answer, or an exception's text, goes to `on_done`.

        A worker is given some at a time, to prepare them together.
        """
        jobs: SimpleQueue[range] = SimpleQueue()
        for first in range(0, len(cases), together):
            jobs.put(range(first, min(first + together, len(cases))))
        lock = threading.Lock()
        begun = 0

        def serve() -> None:
            nonlocal begun
            worker: WorkerProcess | None = None
            while (indices := _next(jobs)) and not self._closed and time.monotonic() < until:
                worker = self._prepared(worker, [cases[index] for index in indices])
                for index in indices:
                    if self._closed or time.monotonic() >= until:
                        break
                    with lock:
                        begun += 1
                    answer, worker = self._asked(worker, cases[index], ask)
                    if not self._closed:
                        with lock:
                            on_done(index, answer)
            if worker is not None:
                self._busy.discard(worker)
                self._idle.append(worker)

        serving = [self._threads.submit(serve) for _ in range(min(self._count, len(cases)))]
        try:
            while wait(serving, timeout=_POLL_S).not_done:  # a timed wait keeps Ctrl-C deliverable
                signals.check()
        except KeyboardInterrupt:
            self.__exit__()
            wait(serving, timeout=_FAREWELL_S)
            raise
        for each in serving:
            each.result()
        return begun

    def _prepared(self, worker: WorkerProcess | None, cases: Sequence[Case]) -> WorkerProcess | None:
        """A worker that is told of several cases that come next; None where there is none to tell."""
        if len(cases) < 2:
            return worker
        try:
            if worker is None:
                worker = self._taken()
            worker.tell(Prepare(tuple(cases)))
        except (WorkerDied, GpuprofError):
            return self._lost(worker, "")[1]
        return worker

    def _taken(self) -> WorkerProcess:
        """An idle worker, or a new one."""
        try:
            worker = self._idle.pop()
        except IndexError:
            worker = WorkerProcess(self._request)
        self._busy.add(worker)
        return worker

    def _asked(
        self, worker: WorkerProcess | None, case: Case, ask: _Ask, tries: int = 1
    ) -> tuple[Any, WorkerProcess | None]:
        """The answer, or why there is none; and the process, where it lives."""
        try:
            if worker is None:
                worker = self._taken()
            return ask(worker, case), worker
        except WorkerTimeout:
            return self._lost(worker, "it takes too long")
        except (WorkerDied, GpuprofError, KeyboardInterrupt) as error:
            lost = self._lost(worker, f"its process was lost: {error}")
            if worth_another_try(error, tries) and not self._closed:
                return self._asked(None, case, ask, tries + 1)
            return lost

    def _lost(self, worker: WorkerProcess | None, why: str) -> tuple[str, None]:
        if worker is not None:
            self._busy.discard(worker)
            with suppress(WorkerDied):
                worker.close()
        return why, None


def _next(jobs: "SimpleQueue[range]") -> range:
    """The next indices; none when all are taken."""
    try:
        return jobs.get_nowait()
    except Empty:
        return range(0)
