# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""An end for work that does not look at the clock itself."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class OutOfTime(BaseException):
    """The time is spent: raised wherever the work is, past all that handles errors of the work itself."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """End the block with `OutOfTime` unless it ends by itself; only in the main thread of a process.

    What the block was changing when its time ran out must not be used again.
    """

    def end(_number: int, _frame: FrameType | None) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
