# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What limits a case: floors of its parts, what binds, and where."""

from collections.abc import Iterator
from dataclasses import dataclass

from gpuprof.analysis import numbers
from gpuprof.analysis.kinds import on_host
from gpuprof.analysis.latency import Flight, flight, sentences
from gpuprof.analysis.memo import remembered
from gpuprof.analysis.speed import speed_of
from gpuprof.bounds.parts import LAUNCH, PARTS
from gpuprof.results import Bound, Measurement, Run

#: A case that takes so many times its highest bound is held by something that no bound holds.
FAR = 1.5
#: What moves a floor by less than this share of the highest one explains nothing.
_TELLING = 0.05
_MOST_SHIFTS = 3
#: Whose hits keep work from a part.
_CACHES = {"l2": "L1", "dram": "the caches"}


@dataclass(frozen=True, slots=True)
class Floor:
    """One bound of a case, ready to be shown.

    Args:
        key: The part's.
        label: The part's name.
        short: The same for a narrow column.
        meaning: What the part does.
        bound: Time, formula and source.
        share_pct: Of the measured time; None without one.
        binds: Whether no other part needs longer.
    """

    key: str
    label: str
    short: str
    meaning: str
    bound: Bound
    share_pct: float | None
    binds: bool


@dataclass(frozen=True, slots=True)
class HotLine:
    """The source line that causes most of the binding part's work."""

    line: int
    share_pct: float


@dataclass(frozen=True, slots=True)
class Shift:
    """How one part's floor differs between two kernels for the same work.

    Args:
        label: The part.
        before_us: Of the kernel that it is compared with.
        after_us: Of the kernel itself.
        if_uncached: Whether these are the times that the part needs where caches absorb nothing.
    """

    label: str
    before_us: float
    after_us: float
    if_uncached: bool

    @property
    def text(self) -> str:
        """For example `Shared memory and L1 17.6 ms → 9.31 ms`."""
        up_to = " up to" if self.if_uncached else ""
        return f"{self.label}{up_to} {numbers.time_us(self.before_us)} → {numbers.time_us(self.after_us)}"


@dataclass(frozen=True, slots=True)
class LatencyShift:
    """How long work of one part takes to arrive in two kernels that nothing but latency holds.

    Args:
        before: Of the kernel that it is compared with.
        after: Of the kernel itself.
    """

    before: Flight
    after: Flight

    @property
    def text(self) -> str:
        """What must be in flight to keep the part busy, before and after."""
        before, after = self.before, self.after
        return (
            f"latency of {after.label} {numbers.significant(before.cycles)} →"
            f" {numbers.significant(after.cycles)} cycles, so that {numbers.significant(before.needed)} →"
            f" {numbers.significant(after.needed)} {after.unit} in flight would keep it busy"
        )


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of one case.

    Args:
        floors: The one that binds first.
        measured_us: The cold median; None where nothing was timed.
        hot: None where no line was counted.
        latency: What to say where the measured time is far above every bound; empty elsewhere.
        flight: There, what would keep the part busy that has most to do; None where that is not known.
    """

    floors: tuple[Floor, ...]
    measured_us: float | None
    hot: HotLine | None
    latency: str
    flight: Flight | None

    @property
    def uncached(self) -> str:
        """What levels below the caches need without them, where that exceeds every floor; else empty."""
        beyond = [
            f"{floor.label} would need {numbers.time_us(most)} without hits in {_CACHES[floor.key]}"
            for floor in self.floors
            if (most := floor.bound.most_us or 0.0) > self.least_us and floor.key in _CACHES
        ]
        return f"{'; '.join(beyond)}." if beyond else ""

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
    def text(self) -> str:
        """One sentence: what binds, and how near the case is to that."""
        least, label = numbers.time_us(self.least_us), self.binding.label
        if self.ratio is None:
            return f"cannot be faster than {least} ({label})"
        if self.latency:
            return f"latency-bound: {numbers.ratio(self.ratio)} its highest bound, {least} ({label})"
        return f"bound by {label}: {least} at least, {numbers.percent(100 / self.ratio)} of the time it takes"


@remembered
def limits_of(run: Run, case: Measurement) -> Limits | None:
    """The bounds of a case; None where exact counts are missing."""
    if case.bound_by is None or case.bound_by not in case.bounds or on_host(run, case):
        return None
    device = run.devices[case.device]
    speed = speed_of(run, case)
    measured = speed.median_us if speed else None
    ordered = sorted(case.bounds, key=lambda key: -case.bounds[key].least_us)
    floors = tuple(
        Floor(
            key,
            PARTS[key].label if key in PARTS else key,
            PARTS[key].short if key in PARTS else key,
            PARTS[key].meaning if key in PARTS else "",
            case.bounds[key],
            100 * case.bounds[key].least_us / measured if measured else None,
            key == ordered[0],
        )
        for key in ordered
    )
    binding = floors[0]
    far = measured is not None and measured > FAR * binding.bound.least_us
    # What a launch takes needs nothing in flight.
    busiest = next((floor.key for floor in floors if floor.key != LAUNCH.key), None)
    needs = flight(case, device, busiest) if far and busiest is not None else None
    return Limits(
        floors=floors,
        measured_us=measured,
        hot=_hot_line(case, binding.bound),
        latency=sentences(case, device, needs) if far and busiest is not None else "",
        flight=needs,
    )


def shifts(before: Limits, after: Limits) -> tuple[Shift | LatencyShift, ...]:
    """Which parts got more or less to do from one kernel to the next, the largest difference first.

    Where latency holds both kernels, how it changed stands before these.

    Args:
        before: The kernel below.
        after: The kernel itself.
    """
    olds, news = ({floor.key: floor for floor in limits.floors} for limits in (before, after))
    scale = _TELLING * max(before.least_us, after.least_us)
    found = []
    for key in (key for key in PARTS if key in olds and key in news and key != LAUNCH.key):
        old, new = olds[key].bound, news[key].bound
        pairs = [(old.least_us, new.least_us, False)]
        if old.most_us or new.most_us:
            pairs.append((old.most_us or old.least_us, new.most_us or new.least_us, True))
        most = max(pairs, key=lambda pair: abs(pair[1] - pair[0]))
        if abs(most[1] - most[0]) >= scale:
            found.append(Shift(news[key].label, *most))
    found = sorted(found, key=lambda shift: -abs(shift.after_us - shift.before_us))[:_MOST_SHIFTS]
    return (*_latency_shift(before.flight, after.flight), *found)


def _latency_shift(before: Flight | None, after: Flight | None) -> Iterator[LatencyShift]:
    if before is None or after is None or before.label != after.label:
        return
    if abs(before.cycles - after.cycles) >= _TELLING * max(before.cycles, after.cycles):
        yield LatencyShift(before, after)


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
    """Each part that any case has a bound for, and who publishes the rate that it was reckoned with.

    Args:
        run: With its bounds.
    """
    found = dict.fromkeys(
        (key, bound.source)
        for key in PARTS
        for case in run.cases
        if case.bound_by is not None and (bound := case.bounds.get(key)) is not None
    )
    return tuple((PARTS[key].label, source) for key, source in found)
