# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which figures a ladder can be drawn by: rates and times on a GPU, counts or resources without one."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from gpuprof.analysis import numbers
from gpuprof.analysis.figure import Subject
from gpuprof.analysis.figures import FIGURES, headline_rate
from gpuprof.analysis.groups import Group
from gpuprof.analysis.ladder import Rung, SizeLadder
from gpuprof.analysis.speed import limit_of, rate, rate_at
from gpuprof.report.cells import cell_of
from gpuprof.results import Measurement, Run

#: Ratio of the longest bar to the shortest up to which a linear axis shows both.
_LINEAR_SPREAD = 30.0
#: Bandwidths are compared in GB/s throughout.
_GIGABYTES: numbers.Units = ((1.0, "GB/s"),)


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar.

    Args:
        value: Its length.
        low: Lower end of its error bar; equal to `value` without one.
        high: Upper end.
        text: Its label.
        short: The beginning of it that stands where space is scarce.
        mark: A second value of the same unit, marked beside the bar's end; None without one.
    """

    value: float
    low: float
    high: float
    text: str
    short: str
    mark: float | None = None


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure to draw the ladder by.

    Args:
        key: Stable name.
        label: On the button that chooses it.
        axis: The axis's title, with unit and direction.
        lines: Values to mark across all bars, with their labels.
        divisor: Turns a bar's value into the axis's unit.
        logarithmic: The bars span so many factors that a linear axis would show only the longest.
        read: A rung's bar, None where the figure does not exist.
    """

    key: str
    label: str
    axis: str
    lines: tuple[tuple[float, str], ...]
    read: Callable[[Rung], Bar | None]
    divisor: float = 1.0
    logarithmic: bool = False


def ladder_metrics(run: Run, group: Group, ladder: SizeLadder) -> tuple[Metric, ...]:
    """The figures that at least one rung has, the headline first."""
    timed = (_rate_metric(run, group, ladder), _time_metric(run, ladder)) if run.backend == "gpu" else ()
    plain = _COUNTED if timed else {**_COUNTED, **_COMPILED}
    candidates = (
        *timed,
        _bound_metric(run, ladder),
        *(_plain(run, key, *texts) for key, texts in plain.items()),
    )
    return tuple(
        replace(metric, logarithmic=metric.key == "sector_ratio" and _spread(metric, ladder) > _LINEAR_SPREAD)
        for metric in candidates
        if any(metric.read(rung) is not None for rung in ladder.rungs)
    )


def _spread(metric: Metric, ladder: SizeLadder) -> float:
    """The longest bar over the shortest."""
    values = [bar.value for rung in ladder.rungs if (bar := metric.read(rung)) and bar.value > 0]
    return max(values) / min(values) if values else 1.0


def _rate_text(run: Run, case: Measurement) -> str:
    return cell_of(headline_rate(run, case), Subject(run, case)).text or ""


def _rate_metric(run: Run, group: Group, ladder: SizeLadder) -> Metric:
    flops = group.rate_is_flops

    def bar(rung: Rung) -> Bar | None:
        speed = rung.speed
        if speed is None:
            return None
        parts = [_rate_text(run, rung.case), numbers.time_us(speed.median_us)]
        if speed.pct_of_limit is not None:
            parts.append(f"{numbers.percent(speed.pct_of_limit)} of peak")
        if rung.gain is not None:
            parts.append(f"{numbers.ratio(rung.gain)} over {rung.previous}")
        return Bar(
            value=rate(speed, flops),
            low=rate_at(rung.case.problem, speed.timing.p95_us, flops),
            high=rate_at(rung.case.problem, speed.timing.p05_us, flops),
            text=" · ".join(parts),
            short=" · ".join(parts[:2]),
        )

    units = numbers.COMPUTE_UNITS if flops else _GIGABYTES
    divisor, unit = numbers.unit_for(_largest(bar, ladder), units)
    axis = f"{unit} from the cold median; whiskers p05–p95; longer is better"
    return Metric("rate", "Rate", axis, _roofs(run, ladder, flops), bar, divisor)


def _largest(bar: Callable[[Rung], Bar | None], ladder: SizeLadder) -> float:
    return max((max(held.value, held.mark or 0) for rung in ladder.rungs if (held := bar(rung))), default=1.0)


def _time_metric(run: Run, ladder: SizeLadder) -> Metric:
    def bar(rung: Rung) -> Bar | None:
        speed = rung.speed
        if speed is None:
            return None
        short = numbers.time_us(speed.median_us)
        return Bar(
            speed.median_us,
            speed.timing.p05_us,
            speed.timing.p95_us,
            f"{short} · {_rate_text(run, rung.case)}",
            short,
        )

    divisor, unit = numbers.unit_for(_largest(bar, ladder), numbers.TIME_UNITS)
    return Metric(
        "time", "Time", f"{unit}, cold median; whiskers p05–p95; shorter is better", (), bar, divisor
    )


def _bound_metric(run: Run, ladder: SizeLadder) -> Metric:
    """The least time of each rung, with the measured one as a mark."""

    def bar(rung: Rung) -> Bar | None:
        limits = rung.limits
        if limits is None:
            return None
        least, measured = limits.least_us, limits.measured_us
        parts = [numbers.time_us(least), limits.binding.short]
        if measured is not None:
            parts.append(f"{numbers.percent(100 * least / measured)} of {numbers.time_us(measured)}")
        return Bar(least, least, least, " · ".join(parts), " · ".join(parts[:2]), measured)

    divisor, unit = numbers.unit_for(_largest(bar, ladder), numbers.TIME_UNITS)
    marked = "; a line marks the measured time" if run.backend == "gpu" else ", no measured time"
    return Metric("bound", "Bound", f"{unit} at least, by exact counts{marked}", (), bar, divisor)


def _roofs(run: Run, ladder: SizeLadder, flops: bool) -> tuple[tuple[float, str], ...]:
    """The theoretical roof over this size as a rate, and the measured copy bandwidth where it bounds that."""
    limit = limit_of(ladder.size.problem, run.devices[ladder.size.device])
    if limit is None:
        return ()
    if flops and limit.gflops is not None:
        return ((limit.gflops, f"theoretical peak {limit.name} {numbers.gflops(limit.gflops)}"),)
    roof = ((limit.gbps, f"theoretical peak {limit.name} {numbers.gbps(limit.gbps)}"),)
    copy = run.devices[ladder.size.device].measured_copy_bandwidth_gbps
    return (*roof, (copy, f"measured copy {numbers.gbps(copy)}")) if copy else roof


def _plain(run: Run, key: str, label: str, axis: str, lines: tuple[tuple[float, str], ...] = ()) -> Metric:
    figure = FIGURES[key]

    def bar(rung: Rung) -> Bar | None:
        value = figure.value(Subject(run, rung.case, rung))
        if value is None:
            return None
        text = figure.write(value)
        return Bar(value, value, value, text, text)

    return Metric(key, label, axis, lines, bar)


_WHOLE = ((100.0, "100 %"),)
#: Counts and resources by figure: the button's label, the axis's title, and lines to mark.
_COUNTED: dict[str, tuple[Any, ...]] = {
    "sector_ratio": (
        "Global traffic",
        "bytes of global sectors requested, × the fewest possible; shorter is better",
        ((1.0, "fewest possible"),),
    ),
    "global_load_efficiency_pct": (
        "Load efficiency",
        "useful bytes in the sectors of global loads, %; longer is better",
        _WHOLE,
    ),
    "global_store_efficiency_pct": (
        "Store efficiency",
        "useful bytes in the sectors of global stores, %; longer is better",
        _WHOLE,
    ),
    "shared_wavefronts_per_step": (
        "Shared wavefronts",
        "shared-memory passes per warp-wide step of useful work; shorter is better",
    ),
    "bank_conflicts_per_step": (
        "Bank conflicts",
        "extra shared-memory passes per warp-wide step of useful work; shorter is better",
    ),
}
_COMPILED: dict[str, tuple[Any, ...]] = {
    "theoretical_occupancy_pct": (
        "Occupancy",
        "theoretical occupancy, %; more is not always faster",
        _WHOLE,
    ),
    "registers_per_thread": ("Registers", "registers per thread"),
    "shared_bytes": ("Shared memory", "bytes of shared memory per block"),
}
