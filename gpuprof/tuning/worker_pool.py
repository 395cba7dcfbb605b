# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Processes on all cores that compile and count candidates, while nothing is being timed."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from gpuprof.devices.device import Device
from gpuprof.machine import usable_cores
from gpuprof.measure.case import Case, unmeasured
from gpuprof.measure.counting import OnCase, findings_in, with_counts
from gpuprof.measure.executors import ExecutorProcess
from gpuprof.measure.pool import Pool
from gpuprof.measure.protocol import (
    Build,
    Count,
    Found,
    Measured,
    Open,
    Prepare,
)
from gpuprof.results import Measurement

#: The longest that compiling one case may take, and counting it.
BUILD_SECONDS = 60.0
COUNT_SECONDS = 20.0
#: Memory holds so many executors besides what else runs.
_MOST_WORKERS = 32
#: Cases that a worker takes at a time to count: their machine code is disassembled together, which takes
#: little longer than that of one.
_TOGETHER = 8


class WorkerPool:
    """Executors, one on each core."""

    def __init__(self, device: Device, run: Open, workers: int | None = None) -> None:
        self._device, request = device, replace(run, executes=device)
        self._count = min(_MOST_WORKERS, workers or usable_cores())
        self._pool = Pool([ExecutorProcess(request) for _ in range(self._count)], ahead=False)

    def __enter__(self) -> "WorkerPool":
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close()

    def build(self, cases: Sequence[Case], on_done: OnCase, until: float) -> int:
        """Compile cases in order and tell what they occupy.

        `on_done` is called with a case's index and what is known of it, from one thread at a time; its reason
        says why one cannot run. After `until`, by the monotonic clock, no further one is begun.

        Returns:
            How many were begun.

        Raises:
            KeyboardInterrupt: The run was asked to end.
        """

        def done(index: int, answer: Measured | str) -> None:
            case = cases[index]
            if isinstance(answer, str):
                why = f"It could not be compiled: {answer}."
                on_done(index, unmeasured(case, case.kernel, "failed", why, "it was not compiled"))
            else:
                on_done(index, answer.measurement)

        return self._each(cases, Build, BUILD_SECONDS, done, until)

    def count(self, built: Sequence[tuple[Case, Measurement]], on_done: OnCase, until: float) -> int:
        """Count cases that `build` told of, as it does: with bounds and model, or why there are none."""

        def done(index: int, answer: Found | str) -> None:
            found = findings_in(answer)
            known = built[index][1] if found.reason else replace(built[index][1], outcome="ok", reason=None)
            on_done(index, with_counts(known, found, self._device))

        together = max(1, min(_TOGETHER, len(built) // (2 * self._count)))
        return self._each([case for case, _ in built], Count, COUNT_SECONDS, done, until, together)

    def _each(
        self,
        cases: Sequence[Case],
        request_of: Callable[[Case], Any],
        seconds: float,
        on_done: Callable[[int, Any], None],
        until: float,
        together: int = 1,
    ) -> int:
        """Ask about each case; the answer, or why there is none, goes to `on_done`.

        A process is given some at a time, to prepare them together.
        """
        lock = threading.Lock()
        begun = 0

        def is_over() -> bool:
            return self._pool.closed or time.monotonic() >= until

        def serve(indices: range, process: ExecutorProcess) -> None:
            nonlocal begun
            if len(indices) > 1 and not is_over():
                process.tell(Prepare(tuple(cases[index] for index in indices)))
            for index in indices:
                if is_over():
                    break
                with lock:
                    begun += 1
                answer = process.answer(request_of(cases[index]), seconds)
                if not self._pool.closed:
                    with lock:
                        on_done(index, answer)

        for first in range(0, len(cases), together):
            indices = range(first, min(first + together, len(cases)))
            self._pool.add(cases[first].name, partial(serve, indices))
        self._pool.settle()
        return begun
