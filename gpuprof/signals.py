# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C, SIGTERM and SIGHUP: an end at once while nothing is at stake, an end in good order after that.

A handler never raises: an exception out of nowhere tears whatever runs just then, and is lost where Python
ignores exceptions. A request to end is noted instead, and the places that wait ask for it with `check`.
This module must be in force before anything else is loaded, so that it imports next to nothing.
"""

import fcntl
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
        self.arrivals = -1

    def take(self, number: int, _frame: FrameType | None) -> None:
        """Note one signal, or end the process where nothing would be lost by it."""
        now = time.monotonic()
        if not self.count:
            self.first, self.first_at = self._earliest(number), now
        self.count += 1
        impatient = self.count > 2 and now - self.first_at > _PATIENCE_S
        if impatient or not self.postponed:
            os._exit(128 + self.first)

    def _earliest(self, number: int) -> int:
        """The signal that came first: of those that wait, Python handles the lowest number first."""
        try:
            arrived = os.read(self.arrivals, 4096)
        except OSError:  # the pipe is somebody else's by now
            arrived = b""
        return next((one for one in arrived if one in ENDING), number)


_requests = _Requests()


def install() -> None:
    """Take the signals over; one that the parent has this process ignore, as `nohup` does, stays ignored.

    Python runs handlers between two of its own instructions, so that several signals may wait while a library
    works; what it writes to this pipe when each one arrives keeps their order.
    """
    ends = os.pipe()
    # Not in the place of a standard stream that the shell closed.
    _requests.arrivals, told = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 3) for end in ends)
    for end in ends:
        os.close(end)
    for end in (_requests.arrivals, told):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
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
