# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C, SIGTERM and SIGHUP: an end at once while nothing is at stake, an end in good order after that.

A handler never raises: an exception out of nowhere tears whatever runs just then, and is lost where Python
ignores exceptions. A request to end is noted instead, and the places that wait ask for it with `check`.
This module must be in force before anything else is loaded, so that it imports next to nothing.
"""

import os
import signal
import time
from types import FrameType

#: What asks a process to end. A shell shows an end by one of them as 128 plus its number.
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: A third request this long after the first is taken for what it is: something hangs.
_PATIENCE_S = 5.0


class _Requests:
    def __init__(self) -> None:
        self.postponed = False
        self.first = 0
        self.first_at = 0.0
        self.count = 0

    def take(self, number: int, _frame: FrameType | None) -> None:
        """Note one signal, or end the process where nothing would be lost by it."""
        now = time.monotonic()
        if not self.count:
            self.first, self.first_at = number, now
        self.count += 1
        impatient = self.count > 2 and now - self.first_at > _PATIENCE_S
        if impatient or not self.postponed:
            os._exit(128 + self.first)


_requests = _Requests()


def install() -> None:
    """Take the signals over; one that the parent has this process ignore, as `nohup` does, stays ignored."""
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _requests.take)


def postpone() -> None:
    """From here on something would be lost: note a request, for `check` to find."""
    _requests.postponed = True


def check() -> None:
    """End the work where a signal has asked for it.

    Raises KeyboardInterrupt, at every further check too.
    """
    if _requests.count:
        raise KeyboardInterrupt


def status() -> int | None:
    """The exit status that tells which signal asked first; None when none did."""
    return 128 + _requests.first if _requests.count else None


def disregard() -> None:
    """Nothing is left to end: let the last lines be written and the interpreter shut down in peace."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
