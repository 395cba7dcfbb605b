# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Worker processes on all cores that compile and count candidates, while nothing is being timed."""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import Any

from gpuprof import signals
from gpuprof.bounds import with_bounds
from gpuprof.errors import GpuprofError
from gpuprof.machine import usable_cores
from gpuprof.measure.case import Case, unmeasured
from gpuprof.measure.process import TRIES_WHEN_TAKEN, WorkerDied, WorkerProcess, WorkerTimeout
from gpuprof.measure.protocol import Build, Built, Count, Counted, OpenExecutor
from gpuprof.results import Measurement

#: The longest that compiling one case may take, and counting it.
BUILD_SECONDS = 60.0
COUNT_SECONDS = 20.0
#: Memory holds so many executors besides what else runs.
_MOST_WORKERS = 32
_POLL_S = 0.1
_FAREWELL_S = 5.0

OnDone = Callable[[int, Measurement], None]
#: Asks a worker about one case.
_Ask = Callable[[WorkerProcess, Case], Any]


class Crew:
    """Executors, one on each core.

    Args:
        request: What each opens.
        workers: How many; as many as there are cores when None.
    """

    def __init__(self, request: OpenExecutor, workers: int | None = None) -> None:
        self._request = request
        self._count = min(_MOST_WORKERS, workers or usable_cores())
        self._idle: list[WorkerProcess] = []
        self._busy: set[WorkerProcess] = set()
        self._closed = False

    def __enter__(self) -> "Crew":
        return self

    def __exit__(self, *_: object) -> None:
        """End all processes."""
        self._closed = True
        for worker in (*self._idle, *tuple(self._busy)):
            with suppress(WorkerDied):
                worker.close()

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
        """Count compiled cases on the executor.

        Args:
            built: Cases with what `build` told of them.
            on_done: As of `build`: called with the case's bounds; of one that could not be counted, with the
                reason.
            until: As of `build`.

        Returns:
            How many were begun.

        Raises:
            KeyboardInterrupt: The run was asked to end.
        """

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

        return self._each([case for case, _ in built], ask, done, until)

    def _each(
        self, cases: Sequence[Case], ask: _Ask, on_done: Callable[[int, Any], None], until: float
    ) -> int:
        """Ask about each case; the answer, or an exception's text, goes to `on_done`."""
        jobs: SimpleQueue[int] = SimpleQueue()
        for index in range(len(cases)):
            jobs.put(index)
        lock = threading.Lock()
        begun = 0

        def serve() -> None:
            nonlocal begun
            worker: WorkerProcess | None = None
            while not self._closed and time.monotonic() < until:
                try:
                    index = jobs.get_nowait()
                except Empty:
                    break
                with lock:
                    begun += 1
                answer, worker = self._asked(worker, cases[index], ask)
                if self._closed:
                    break
                with lock:
                    on_done(index, answer)
            if worker is not None:
                self._busy.discard(worker)
                self._idle.append(worker)

        threads = [
            threading.Thread(target=serve, daemon=True) for _ in range(min(self._count, max(1, len(cases))))
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    signals.check()
                    thread.join(_POLL_S)  # a timed wait keeps Ctrl-C deliverable
        except KeyboardInterrupt:
            self.__exit__()
            for thread in threads:
                thread.join(_FAREWELL_S)
            raise
        return begun

    def _asked(
        self, worker: WorkerProcess | None, case: Case, ask: _Ask, tries: int = 1
    ) -> tuple[Any, WorkerProcess | None]:
        """The answer, or why there is none; and the process, where it lives."""
        try:
            if worker is None:
                worker = self._idle.pop() if self._idle else WorkerProcess(self._request)
                self._busy.add(worker)
            return ask(worker, case), worker
        except WorkerTimeout:
            return self._lost(worker, "it takes too long")
        except (WorkerDied, GpuprofError, KeyboardInterrupt) as error:
            lost = self._lost(worker, f"its process was lost: {error}")
            taken = isinstance(error, WorkerDied) and error.taken
            if taken and tries < TRIES_WHEN_TAKEN and not self._closed:
                return self._asked(None, case, ask, tries + 1)
            return lost

    def _lost(self, worker: WorkerProcess | None, why: str) -> tuple[str, None]:
        if worker is not None:
            self._busy.discard(worker)
            with suppress(WorkerDied):
                worker.close()
        return why, None
