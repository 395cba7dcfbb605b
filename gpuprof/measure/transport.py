# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How a case reaches the process that runs it: a worker process on this machine, or one of a cluster's.

Whatever lies between, a worker answers the same messages, and its end means the same.
"""

from typing import Any, Protocol

from gpuprof.measure.process import WorkerDied, WorkerProcess
from gpuprof.measure.protocol import Open, Opened


class Worker(Protocol):
    """A process with an open backend, wherever it is."""

    @property
    def opened(self) -> Opened:
        """What it opened."""
        ...

    def ask(self, request: Any, timeout_s: float, *, compile_s: float | None = None) -> Any:
        """Send a request and wait for its answer.

        Args:
            request: What to ask.
            timeout_s: Longest that the answer may take.
            compile_s: Longest that the compiler may take before that, where it is asked too.

        Raises:
            GpuprofError: The worker refused the request.
            WorkerDied: It ended instead.
            WorkerTimeout: It did not answer in time; it has been killed.
            KeyboardInterrupt: The run was asked to end.
        """
        ...

    def tell(self, request: Any) -> None:
        """Send a request that has no answer.

        Raises:
            WorkerDied: The worker is gone.
        """
        ...

    def close(self) -> None:
        """End the process."""
        ...


class Transport(Protocol):
    """A place where worker processes can be had, one at a time."""

    def open(self, request: Open) -> Worker:
        """Start a worker.

        Raises:
            GpuprofError: The backend cannot be opened there.
            PlaceLost: There is no such place any more.
            KeyboardInterrupt: The run was asked to end.
        """
        ...


class WorkerVanished(WorkerDied):
    """The machine or the connection went away under the worker: the case need not be to blame."""


class PlaceLost(Exception):
    """No worker can be had any more where there was one; the text says why, as a clause."""


class Here:
    """Processes of this machine."""

    def open(self, request: Open) -> Worker:
        """Start a worker process."""
        return WorkerProcess(request)


HERE: Transport = Here()
