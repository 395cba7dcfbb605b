# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What limits a case: floors of its parts, what binds, and where."""

from typing import NamedTuple

from msgspec import Struct

from gpuprof.analysis import numbers
from gpuprof.analysis.memo import remembered
from gpuprof.analysis.speed import speed_of
from gpuprof.analysis.status import on_host
from gpuprof.bounds.parts import LAUNCH, PARTS
from gpuprof.results import Bound, Measurement, Run

#: A case that takes so many times its highest bound is held by something that no bound holds.
FAR = 1.5
#: What moves a floor by less than this share of the highest one explains nothing.
_TELLING = 0.05
_MOST_SHIFTS = 3


class Floor(NamedTuple):
    """One bound of a case: its part, and its share of the measured time, None without one."""

    key: str
    label: str
    short: str
    bound: Bound
    share_pct: float | None


class HotLine(NamedTuple):
    """The source line that causes most of the binding part's work."""

    line: int
    share_pct: float


class Limits(Struct, frozen=True):
    """The bounds of one case, the one that binds first; no line is hot where none was counted."""

    floors: tuple[Floor, ...]
    measured_us: float | None
    hot: HotLine | None
    modelled_us: float | None = None

    @property
    def binding(self) -> Floor:
        """The floor that no other exceeds."""
        return self.floors[0]

    @property
    def least_us(self) -> float:
        """The time that no launch of the case can go below."""
        return self.binding.bound.least_us

    @property
    def ratio(self) -> float | None:
        """Measured time over the highest bound; None where nothing was timed."""
        return self.measured_us / self.least_us if self.measured_us else None

    @property
    def share_pct(self) -> float | None:
        """The highest bound as a share of the measured time; None where nothing was timed."""
        return 100 / self.ratio if self.ratio else None

    @property
    def is_far(self) -> bool:
        """Whether the measured time, else the modelled one, is far above every bound."""
        return (self.measured_us or self.modelled_us or 0.0) > FAR * self.least_us

    @property
    def text(self) -> str:
        """What binds, and how near the case is to that."""
        least, label = numbers.time_us(self.least_us), self.binding.label
        if self.ratio is None:
            return f"cannot be faster than {least} ({label})"
        if self.is_far:
            return f"takes {numbers.ratio(self.ratio)} its highest bound, {least} ({label})"
        return f"bound by {label}: {least} at least, {numbers.percent(100 / self.ratio)} of the time it takes"


@remembered
def limits_of(run: Run, case: Measurement) -> Limits | None:
    """The bounds of a case; None where exact counts are missing."""
    if case.bound_by is None or case.bound_by not in case.bounds or on_host(run, case):
        return None
    speed = speed_of(run, case)
    measured = speed.median_us if speed else None
    ordered = sorted(case.bounds, key=lambda key: -case.bounds[key].least_us)
    floors = []
    for key in ordered:
        label, short = (PARTS[key].label, PARTS[key].short) if key in PARTS else (key, key)
        share = 100 * case.bounds[key].least_us / measured if measured else None
        floors.append(Floor(key, label, short, case.bounds[key], share))
    modelled = case.model.median_us if case.model else None
    return Limits(tuple(floors), measured, _hot_line(case, floors[0].bound), modelled)


def shifts(before: Limits, after: Limits) -> tuple[str, ...]:
    """Which parts got more or less to do from one kernel to the next, the largest difference first.

    For example `Shared memory and L1 17.6 ms → 9.31 ms`, or `without cache hits` where that moved more.
    """
    olds, news = ({floor.key: floor for floor in limits.floors} for limits in (before, after))
    scale = _TELLING * max(before.least_us, after.least_us)
    found = []
    for key in (key for key in PARTS if key in olds and key in news and key != LAUNCH.key):
        old, new = olds[key].bound, news[key].bound
        pairs = [(old.least_us, new.least_us, "")]
        if old.most_us or new.most_us:
            pairs.append((old.most_us or old.least_us, new.most_us or new.least_us, " without cache hits"))
        was, now, uncached = max(pairs, key=lambda pair: abs(pair[1] - pair[0]))
        if abs(now - was) >= scale:
            text = f"{news[key].label}{uncached} {numbers.time_us(was)} → {numbers.time_us(now)}"
            found.append((abs(now - was), text))
    found.sort(key=lambda item: -item[0])
    return tuple(text for _, text in found[:_MOST_SHIFTS])


def _hot_line(case: Measurement, bound: Bound) -> HotLine | None:
    work = {
        line.line: sum(line.counters.get(name, 0) for name in bound.counters) for line in case.lines or ()
    }
    total = sum(work.values())
    if not total:
        return None
    line = max(work, key=work.__getitem__)
    return HotLine(line, 100 * work[line] / total)


def rate_sources(run: Run) -> tuple[tuple[str, str], ...]:
    """Each part that any case has a bound for, and who publishes its rate."""
    found = dict.fromkeys(
        (key, bound.source)
        for key in PARTS
        for case in run.cases
        if case.bound_by is not None and (bound := case.bounds.get(key)) is not None
    )
    return tuple((PARTS[key].label, source) for key, source in found)
