# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Plain loads that end in guarded stores alone: a lane that makes none of these has loaded for nothing.

Compilers that spread a tile over more lanes than it has elements let several lanes load an element, and one
of them store (`program.guesses.idle_loads`). What the others find there is no matter, and no race: a race of
such a load is told once its thread has made a store that its value may have gone to.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpuprof.executor.memory.moments import Numbers


class IdleReads:
    """Races of loads whose values may go nowhere, by the thread that loads.

    Args:
        ends: Lines of the stores that a load's value may go to, by the load's line.
    """

    def __init__(self, ends: Mapping[int, frozenset[int]], report: Callable[[Any], None]) -> None:
        self._ends, self._report = ends, report
        self._stored: dict[int, Numbers] = {
            line: np.zeros(0, np.int64) for each in ends.values() for line in each
        }
        self._held: dict[tuple[int, int], Any] = {}

    def found(self, line: int, thread: int, race: Any) -> None:
        """A load of this line and thread races."""
        if any(np.isin(thread, self._stored[end]) for end in self._ends[line]):
            self._report(race)
        self._held.setdefault((line, thread), race)

    def stores(self, line: int, threads: Numbers) -> None:
        """Threads store in a line."""
        if line not in self._stored:
            return
        self._stored[line] = np.union1d(self._stored[line], threads)
        for (load, thread), race in self._held.items():
            if line in self._ends[load] and np.isin(thread, threads):
                self._report(race)
