# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The parent's side of a worker process: start it, ask it, and notice when it hangs or dies."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from gpuprof import signals
from gpuprof.errors import BackendUnavailable
from gpuprof.measure.protocol import Open, Opened, OpenExecutor, Refused, decode, encode
from gpuprof.text import cut

#: Opening a GPU on a busy machine with a cold driver takes seconds; minutes mean that it hangs.
_OPEN_TIMEOUT_S = 120.0
#: How soon a wait notices that the run has been asked to end.
_POLL_S = 0.1


class WorkerDied(Exception):
    """The worker ended without an answer; the text says how."""


class WorkerTimeout(Exception):
    """The worker gave no answer in time and was killed."""


def child_environment() -> dict[str, str]:
    """The environment in which a child finds the modules that this process finds, and no others.

    What an import hook left on the path leads nowhere, and Python does not start with it where the working
    directory is gone.
    """
    path = os.pathsep.join(filter(os.path.exists, sys.path))
    return {**os.environ, "PYTHONSAFEPATH": "1", "PYTHONPATH": path}


class WorkerProcess:
    """One worker process with its backend opened.

    Args:
        request: What to open.
        patience_s: How long that may take.

    Raises:
        GpuprofError: The backend cannot be opened.
    """

    def __init__(self, request: Open | OpenExecutor, patience_s: float = _OPEN_TIMEOUT_S) -> None:
        self._errors = tempfile.TemporaryFile(mode="w+b")  # noqa: SIM115 - closed with the worker
        self._process = subprocess.Popen(
            [sys.executable, "-m", "gpuprof.measure.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            encoding="utf-8",
            env=child_environment(),
        )
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        Thread(target=self._read, daemon=True).start()
        try:
            self.opened: Opened = self.ask(request, patience_s)
        except (WorkerDied, WorkerTimeout) as error:
            self.close()
            raise BackendUnavailable(f"The worker process could not start: {error}.") from error
        except BaseException:
            self.close()
            raise

    def ask(self, request: Any, timeout_s: float) -> Any:
        """Send a request and wait for its answer.

        Raises:
            GpuprofError: The worker refused the request.
            WorkerDied: It ended instead.
            WorkerTimeout: It did not answer in time; it has been killed.
            KeyboardInterrupt: The run was asked to end.
        """
        self.tell(request)
        line = self._next_line(timeout_s)
        # What ends a run may reach its worker first, and then the worker's end means nothing.
        signals.check()
        if line is None or not line.endswith("\n"):
            raise WorkerDied(self._obituary())
        try:
            answer = decode(line)
        except ValueError as error:
            self.kill()
            raise WorkerDied(f"its answer makes no sense ({cut(str(error), 200)})") from error
        if isinstance(answer, Refused):
            raise answer.error()
        return answer

    def _next_line(self, timeout_s: float) -> str | None:
        """The worker's next line; None when there will be none."""
        deadline = time.monotonic() + timeout_s
        while True:
            signals.check()
            left = deadline - time.monotonic()
            try:
                return self._lines.get(timeout=max(0.0, min(_POLL_S, left)))
            except Empty:
                if left <= _POLL_S:
                    self.kill()
                    raise WorkerTimeout(f"no answer within {timeout_s:g} s") from None

    def tell(self, request: Any) -> None:
        """Send a request that has no answer.

        Raises:
            WorkerDied: The worker is gone.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(encode(request))
            self._process.stdin.flush()
        except OSError as error:
            signals.check()
            raise WorkerDied(self._obituary()) from error

    def kill(self) -> None:
        """End the process at once; the driver then tears down whatever ran on the device."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End the process and free its files."""
        if self._process.poll() is None:
            self.kill()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    continue

    def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            for line in self._process.stdout:
                self._lines.put(line)
        except ValueError:  # closed while reading
            pass
        self._lines.put(None)

    def _obituary(self) -> str:
        code = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        last = f": {lines[-1]}" if lines else ""
        if code < 0:
            return f"the worker process was killed by {signal.Signals(-code).name}{last}"
        return f"the worker process ended with status {code}{last}"
