# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Processes of the executor beside what is measured, which count, explain or compile for it."""

import itertools
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

from gpuprof.backends.base import Findings
from gpuprof.errors import GpuprofError
from gpuprof.measure.case import Case
from gpuprof.measure.process import OPEN_TIMEOUT_S, WorkerProcess, worth_another_try
from gpuprof.measure.protocol import Found, Open, Verify, WorkerDied, WorkerTimeout

#: What ends a case ends the process that verifies it.
_ANY_S = 1e6


class ExecutorProcess:
    """One process, started when it is needed. It ends with the thread that starts it."""

    def __init__(self, request: Open, patience_s: float = OPEN_TIMEOUT_S) -> None:
        self._request = request
        self._patience_s = patience_s
        self._worker: WorkerProcess | None = None
        self._closed = False

    def open(self) -> WorkerProcess:
        """The process.

        Raises:
            GpuprofError: It cannot be started.
            WorkerDied: The run ends.
        """
        if self._worker is None and not self._closed:
            self._worker = WorkerProcess(self._request, self._patience_s)
        worker = self._worker
        if worker is None or self._closed:  # perhaps while it was being started
            self.close()
            raise WorkerDied("the run ends")
        return worker

    def ask(self, request: Callable[[float], Any], end: float) -> Any:
        """The answer to a request; a process that is taken from outside is replaced, and asked again.

        Raises:
            GpuprofError: The process cannot be started, or refused the request.
            WorkerDied: It ended instead, as it does whatever is raised.
            WorkerTimeout: The time was over.
        """
        for tries in itertools.count(1):
            try:
                worker = self.open()
                left = max(end - time.monotonic(), 0.0)
                return worker.ask(request(left), left)
            except (WorkerDied, WorkerTimeout, GpuprofError, KeyboardInterrupt) as error:
                self._discard()
                if self._closed or not worth_another_try(error, tries):
                    raise
        raise AssertionError("tries have no end")

    def answer(self, request: Any, seconds: float) -> Any:
        """The answer to a request, in so many seconds once the process is there; or why there is none."""
        try:
            self.open()
            return self.ask(lambda left: request, time.monotonic() + seconds)
        except WorkerTimeout:
            return f"it takes more than {seconds:g} s"
        except (WorkerDied, GpuprofError, KeyboardInterrupt) as error:
            return f"its process was lost: {error}"

    def tell(self, request: Any) -> None:
        """Send a request that has no answer; a process that cannot be told is replaced when it is asked."""
        try:
            self.open().tell(request)
        except (WorkerDied, GpuprofError):
            self._discard()

    def close(self) -> None:
        self._closed = True
        self._discard()

    def _discard(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            with suppress(WorkerDied):
                worker.close()


@contextmanager
def verified_beside(request: Open, case: Case) -> Iterator[Callable[[], Findings | str | None]]:
    """Have a case verified at smaller sizes by a process that ends with the block; or why it was not."""
    process = ExecutorProcess(request)

    def verify() -> Findings | str | None:
        answer = process.answer(Verify(case), _ANY_S)
        return answer.findings if isinstance(answer, Found) else answer

    with ThreadPoolExecutor(1) as threads:
        found = threads.submit(verify)
        try:
            yield found.result
        finally:
            process.close()
