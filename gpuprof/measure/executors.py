# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Processes of the executor beside what is measured, which count, explain or compile for it."""

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from gpuprof import signals
from gpuprof.errors import GpuprofError
from gpuprof.measure.process import OPEN_TIMEOUT_S, WorkerProcess, worth_another_try
from gpuprof.measure.protocol import OpenExecutor, WorkerDied, WorkerTimeout

_POLL_S = 0.1
_FAREWELL_S = 5.0


class ExecutorProcess:
    """One process, started when it is needed. It ends with the thread that starts it."""

    def __init__(self, request: OpenExecutor, patience_s: float = OPEN_TIMEOUT_S) -> None:
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


#: Work for a process, such as counting a case.
Work = Callable[[ExecutorProcess], None]


class ExecutorPool:
    """Some processes side by side, each with a thread that hands it its work.

    A process keeps what it decoded of a kernel: if possible it gets all of the kernel's work.
    """

    def __init__(self, request: OpenExecutor, size: int, *, ahead: bool) -> None:
        #: Notified of whatever changes here, and held while it does.
        self.changed = threading.Condition()
        self.closed = False
        self._paused = False
        self._error: BaseException | None = None
        self._waiting: list[tuple[str, Work]] = []
        self._decoded_by: dict[str, int] = {}
        self._processes = [ExecutorProcess(request) for _ in range(size)]
        self._busy = size
        # They live as long as their processes are to.
        self._threads = [
            threading.Thread(target=self._serve, args=(number, ahead), daemon=True) for number in range(size)
        ]
        for thread in self._threads:
            thread.start()

    def add(self, kernel: str, work: Work) -> None:
        """Let some process do what has to be done for a kernel."""
        with self.changed:
            self._waiting.append((kernel, work))
            self.changed.notify_all()

    def settle(self) -> None:
        """Wait until all work is done.

        Raises:
            KeyboardInterrupt: The run was asked to end.
            BaseException: What some of the work raised.
        """
        self.wait(lambda: bool(self._waiting or self._busy))

    def wait(self, while_so: Callable[[], bool]) -> None:
        """Wait as long as something is so, as `settle` does."""
        with self.changed:
            while while_so() and not self.closed:
                signals.check()
                self.changed.wait(_POLL_S)
        if self._error is not None:
            raise self._error

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Do nothing within the block; what is under way ends first."""
        try:
            with self.changed:
                self._paused = True
                while self._busy and not self.closed:
                    signals.check()
                    self.changed.wait(_POLL_S)
            yield
        finally:
            with self.changed:
                self._paused = False
                self.changed.notify_all()

    def close(self) -> None:
        """End all processes; what is not done stays undone."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()
        for process in self._processes:
            process.close()
        for thread in self._threads:
            thread.join(_FAREWELL_S)

    def _serve(self, number: int, ahead: bool) -> None:
        process = self._processes[number]
        if ahead:
            with suppress(WorkerDied, GpuprofError, KeyboardInterrupt):  # told of the work that needs one
                process.open()
        while (work := self._next(number)) is not None:
            try:
                work(process)
            except BaseException as error:
                self._error = self._error or error
        process.close()

    def _next(self, number: int) -> Work | None:
        """The next work, if possible of a kernel that no other process has decoded; None at the end."""
        with self.changed:
            self._busy -= 1
            self.changed.notify_all()
            while not self.closed and (self._paused or not self._waiting):
                self.changed.wait()
            if self.closed:
                return None
            own = (one for one in self._waiting if self._decoded_by.get(one[0], number) == number)
            kernel, work = found = next(own, self._waiting[0])
            self._waiting.remove(found)
            self._decoded_by.setdefault(kernel, number)
            self._busy += 1
            return work
