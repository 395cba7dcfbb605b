# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The parent's side of a worker process: start it, ask it, and notice when it hangs or dies.

Those of the executor stand beside what is measured: they count, explain or compile for it.
"""

import itertools
import os
import re
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from gpuprof import signals, timeline
from gpuprof.devices.device import Device
from gpuprof.errors import BackendUnavailable, GpuprofError
from gpuprof.machine import kills_for_memory
from gpuprof.measure import starting
from gpuprof.measure.protocol import (
    OUT_OF_MEMORY,
    Compiled,
    Open,
    Opened,
    WorkerLost,
    answer_of,
    encode,
)

#: Opening a GPU on a busy machine with a cold driver takes seconds; minutes mean that it hangs.
OPEN_TIMEOUT_S = 120.0
#: How soon a wait notices that the run has been asked to end.
_POLL_S = 0.1
#: How many times its limit what only computes may take where others have the processors.
_CROWDED = 10
#: How often a process may be taken from outside before that has to do with what it is asked.
TRIES_WHEN_TAKEN = 3

#: Characters of what a worker prints that are kept: the last ones.
_MOST_PRINTED = 1 << 16
#: What libraries print that end their process when an allocation fails: C++'s, LLVM, OpenBLAS.
_ALLOCATION_FAILED = re.compile("std::bad_alloc|LLVM ERROR: out of memory|OpenBLAS error: Memory allocation")


def worth_another_try(error: BaseException, tries: int) -> bool:
    """Whether what ended a request may have nothing to do with it: its process was taken from outside."""
    return isinstance(error, WorkerLost) and error.taken and tries < TRIES_WHEN_TAKEN


class WorkerProcess:
    """One worker process with its backend opened. One that is taken from outside while it starts is replaced.

    Args:
        on_device: Told of a GPU as soon as it is known, which is before it is ready.

    Raises:
        GpuprofError: The backend cannot be opened.
    """

    def __init__(
        self,
        request: Open,
        patience_s: float = OPEN_TIMEOUT_S,
        on_device: Callable[[Device], None] = lambda device: None,
    ) -> None:
        for tries in itertools.count(1):
            self._start(request)
            try:
                with timeline.span("worker"):
                    began = time.monotonic()
                    answer = self.ask(request, patience_s)
                    if isinstance(answer, Device):
                        on_device(answer)
                        answer = self._answer(max(0.0, patience_s - (time.monotonic() - began)))
                    self.opened: Opened = answer
                self._computes = self.opened.backend == "sim" and request.executes is None
                return
            except WorkerLost as error:
                self.close()
                if not worth_another_try(error, tries):
                    raise BackendUnavailable(f"The worker process could not start: {error}.") from error
            except BaseException:
                self.close()
                raise

    def _start(self, request: Open) -> None:
        self._kills_before, self._computes = kills_for_memory(), False
        self._process = starting.take(request)
        if request.executes is not None:
            starting.stand_back(self._process)
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        self._printed = b""
        Thread(target=self._read, daemon=True).start()
        self._listener = Thread(target=self._listen, daemon=True)
        self._listener.start()

    def ask(self, request: Any, timeout_s: float, *, compile_s: float | None = None) -> Any:
        self.tell(request)
        answer = self._answer(timeout_s if compile_s is None else compile_s, compiling=compile_s is not None)
        return self._answer(timeout_s) if isinstance(answer, Compiled) else answer

    def _answer(self, timeout_s: float, *, compiling: bool = False) -> Any:
        line = self._next_line(timeout_s, compiling=compiling)
        # What ends a run may reach its worker first, and then the worker's end means nothing.
        signals.check()
        if line is None or not line.endswith("\n"):
            raise self._death()
        try:
            return answer_of(line)
        except WorkerLost:  # of a reply that makes no sense
            self.kill()
            raise

    def _next_line(self, timeout_s: float, *, compiling: bool) -> str | None:
        """The worker's next line; None when there will be none.

        What only computes has its limit in seconds of a processor, so that a busy machine decides nothing.
        """
        began, had = time.monotonic(), self._processor_s()
        deadline = began + timeout_s
        while True:
            signals.check()
            left = deadline - time.monotonic()
            try:
                return self._lines.get(timeout=max(0.0, min(_POLL_S, left)))
            except Empty:
                if left > _POLL_S:
                    continue
                lacking = timeout_s - (self._processor_s() - had) if self._computes else 0.0
                deadline = min(deadline + max(lacking, 0.0), began + _CROWDED * timeout_s)
                if lacking <= 0 or deadline <= time.monotonic():
                    self.kill()
                    why = f"no answer within {timeout_s:g} s"
                    raise WorkerLost(why, "timeout", compiling=compiling) from None

    def _processor_s(self) -> float:
        """Seconds of a processor that the process has had; 0 once it has ended."""
        try:
            return time.clock_gettime(~self._process.pid << 3 | 2)  # as Linux numbers a process's clock
        except OSError:
            return 0.0

    def tell(self, request: Any) -> None:
        """Send a request that has no answer."""
        try:
            starting.tell(self._process, encode(request))
        except OSError as error:
            signals.check()
            raise self._death() from error

    def kill(self) -> None:
        """End the process at once; the driver then tears down whatever ran on the device."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        starting.end(self._process)

    def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            for line in self._process.stdout:
                self._lines.put(line)
        except ValueError:  # closed while reading
            pass
        self._lines.put(None)

    def _listen(self) -> None:
        """Take whatever is printed, so that a kernel may print for ever; keep the end of it."""
        assert self._process.stderr is not None
        descriptor = self._process.stderr.fileno()
        with suppress(OSError):  # closed while reading
            while text := os.read(descriptor, _MOST_PRINTED):
                self._printed = (self._printed + text)[-_MOST_PRINTED:]

    def _death(self) -> WorkerLost:
        code = self._process.wait()
        self._listener.join(_POLL_S * 10)
        lines = self._printed.decode(errors="replace").strip().splitlines()
        last = f": {lines[-1][:400].rstrip('.')}" if lines else ""
        failed = next(filter(_ALLOCATION_FAILED.search, reversed(lines)), None)
        if code == OUT_OF_MEMORY or (failed and code in (-signal.SIGABRT, 1)):
            what = failed if code != OUT_OF_MEMORY else lines[-1] if lines else "an allocation failed"
            return WorkerLost(f"there is not enough memory: {what}", out_of_memory=True)
        if code < 0:
            name = signal.Signals(-code).name
            taken = -code == signal.SIGKILL
            if taken and kills_for_memory() > self._kills_before:
                text = "the system had no memory left and killed the worker process"
                return WorkerLost(text, taken=True, out_of_memory=True)
            return WorkerLost(f"the worker process was killed by {name}{last}", taken=taken)
        return WorkerLost(f"the worker process ended with status {code}{last}")


#: Processes of this machine.
HERE = WorkerProcess


class ExecutorProcess:
    """One process, started when it is needed. It ends with the thread that starts it."""

    def __init__(self, request: Open) -> None:
        self._request = request
        self._worker: WorkerProcess | None = None
        self._closed = False

    def open(self) -> WorkerProcess:
        """The process.

        Raises:
            GpuprofError: It cannot be started.
            WorkerLost: The run ends.
        """
        if self._worker is None and not self._closed:
            self._worker = WorkerProcess(self._request)
        worker = self._worker
        if worker is None or self._closed:  # perhaps while it was being started
            self.close()
            raise WorkerLost("the run ends")
        return worker

    def ask(self, request: Any, seconds: float) -> Any:
        """The answer to a request, in so many seconds once the process is there.

        One that is taken from outside is replaced, and asked again.

        Raises:
            GpuprofError: The process cannot be started, or refused the request.
            WorkerLost: It ended instead, as it does whatever is raised, or the time was over.
        """
        begun = 0.0
        for tries in itertools.count(1):
            try:
                worker = self.open()
                begun = begun or time.monotonic()
                return worker.ask(request, max(begun + seconds - time.monotonic(), 0.0))
            except (WorkerLost, GpuprofError, KeyboardInterrupt) as error:
                self._discard()
                if self._closed or not worth_another_try(error, tries):
                    raise
        raise AssertionError("tries have no end")

    def answer(self, request: Any, seconds: float) -> Any:
        """The same, or why there is no answer."""
        try:
            return self.ask(request, seconds)
        except (WorkerLost, GpuprofError, KeyboardInterrupt) as error:
            if isinstance(error, WorkerLost) and error.how == "timeout":
                return f"it takes more than {seconds:g} s"
            return f"its process was lost: {error}"

    def tell(self, request: Any) -> None:
        """Send a request that has no answer; a process that cannot be told is replaced when it is asked."""
        try:
            self.open().tell(request)
        except (WorkerLost, GpuprofError):
            self._discard()

    def close(self) -> None:
        self._closed = True
        self._discard()

    def _discard(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            with suppress(WorkerLost):
                worker.close()
