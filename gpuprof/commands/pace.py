# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How long cases take on the clock on the wall, and how long the rest of a run may take."""

import time
from collections.abc import Callable, Mapping

from gpuprof.measure.case import Case
from gpuprof.results import Measurement

#: Cases that must have ended before the rest is reckoned: the first ones also warm caches and workers.
_FEWEST = 3
#: A rest shorter than this is not worth a word.
_SHORTEST_S = 2.0


class Pace:
    """Times of a run's cases, several of which may run side by side."""

    def __init__(self, cases: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._cases = cases
        self._clock = clock
        self._begun = clock()
        self._running: dict[tuple[object, ...], float] = {}
        self._done = 0

    def start(self, case: Case) -> None:
        """A case begins."""
        params = {**(case.kernel.parameters if case.kernel else {}), **case.params}
        self._running[_key(case.device, case.name, case.problem.label, params, case.block)] = self._clock()
        # A kernel that chooses another runs with that one's block and parameters, and once a size.
        self._running[_key(case.device, case.name, case.problem.label)] = self._clock()

    def finish(self, done: Measurement) -> float | None:
        """A case has ended: the seconds that it took; None where its beginning was not seen."""
        self._done += 1
        whole = _key(done.device, done.kernel, done.problem.label, done.params, done.block)
        begun = self._running.pop(whole, None)
        if begun is None:
            begun = self._running.get(_key(done.device, done.kernel, done.problem.label))
        return None if begun is None else self._clock() - begun

    def rest_s(self) -> float | None:
        """Seconds that the cases to come may take, as long as those before on average; None while unknown."""
        if self._done < _FEWEST or self._done >= self._cases:
            return None
        each = (self._clock() - self._begun) / self._done
        rest = each * (self._cases - self._done)
        return rest if rest >= _SHORTEST_S else None


def _key(*parts: object) -> tuple[object, ...]:
    return tuple(frozenset(part.items()) if isinstance(part, Mapping) else part for part in parts)


def format_seconds(seconds: float) -> str:
    """A duration as people say it: `0.2 s`, `48 s`, `3 min 10 s`, `1 h 5 min`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
