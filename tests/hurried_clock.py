# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A clock that runs while something hangs: what hangs is given up at once, however long it may take."""

import os
import signal
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def hang(place: str | Path) -> None:
    """Never return, and have clocks know it that look there."""
    path = Path(place)
    path.with_suffix(".writing").write_text(str(os.getpid()))
    path.with_suffix(".writing").rename(path)
    time.sleep(600)


#: What a process said before it hung has been read by then.
_HEARD_S = 1.0


class HurriedClock:
    """In the place of the module `time`; at `place` a process says that it hangs."""

    def __init__(self, place: Path) -> None:
        self._place, self._ahead = place, 0.0

    def monotonic(self) -> float:
        """Seconds; an hour more while a process hangs."""
        self._ahead += 3600.0 * self._hangs()
        return time.monotonic() + self._ahead

    def _hangs(self) -> bool:
        try:
            os.kill(int(self._place.read_text()), 0)
            return time.time() - self._place.stat().st_mtime > _HEARD_S
        except (FileNotFoundError, ProcessLookupError):
            return False

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


@contextmanager
def soon(seconds=20):
    """Ends what would go on for minutes or hours: after so much time of the processor, not of the clock."""

    def stop(*_):
        raise TimeoutError("this takes more than linear time")

    previous = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)
