# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What each chart shows, as plain JSON data: what `svg` draws, and the page's script to look closer.

Every text is written here, so that a chart and the table beside it never disagree about a figure.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import compress
from math import log10
from typing import Any, NamedTuple

from markupsafe import Markup

from gpuprof.analysis import numbers
from gpuprof.analysis.figures import Subject, headline_rate
from gpuprof.analysis.groups import Group, kernel_record, name_of
from gpuprof.analysis.ladder import Rung, SizeLadder, build_ladder, standing
from gpuprof.analysis.models import REASONS
from gpuprof.analysis.roofline import Level, Roofline
from gpuprof.analysis.speed import Limit, limit_of, rate, rate_at
from gpuprof.analysis.status import status_of
from gpuprof.records import grouped
from gpuprof.report.case_table import block_phrase, cell_of
from gpuprof.report.ladder_table import steps_to
from gpuprof.report.svg.bar_rows import bar_rows
from gpuprof.report.svg.curves import curves
from gpuprof.results import By, Measurement, Run
from gpuprof.text import visible

Chart = dict[str, Any]

#: A limit up to so many times the longest bar is worth the axis that it takes.
_NEAR = 2.5
#: From so many bars on, those after the fastest few are folded.
_MANY_BARS, _OPEN_BARS = 14, 10
_MOST_POINTS = 7
#: How a rate is called on an axis, and before its value, by what tells it.
_RATES: dict[By, tuple[str, str]] = {
    "time": ("cold median", ""),
    "model": ("as modelled", "modelled "),
    "bound": ("at most by bounds", "at most "),
}
#: Series beyond the colours are told apart by their dashes.
_COLOURS, _DASHES = 8, 4
#: Share of an axis' span that is left free at both ends.
_MARGIN = 0.04
_KINDS: dict[str, Callable[[Chart, int], Markup]] = {
    "bars": bar_rows,
    "lines": curves,
}


def drawings(chart: Chart) -> tuple[Markup, ...]:
    """Every drawing of a chart, one for each choice that its reader has; the first is the one shown."""
    draw = _KINDS[chart["kind"]]
    return tuple(draw(chart, choice) for choice in range(len(chart["choices"])))


class _RungBar(NamedTuple):
    """One figure of a rung, with what its label says; the first `brief` of it in narrow places.

    `low` and `high` end its error bar; `mark` is a second value of the same unit, marked beside the end;
    `parts`, in the order of the metric's, are what it is made of.
    """

    value: float
    told: list[str]
    low: float | None = None
    high: float | None = None
    mark: float | None = None
    parts: tuple[float, ...] = ()
    brief: int = 2

    @property
    def end(self) -> float:
        """Where the last thing drawn of it ends."""
        return max(self.value, self.high or 0.0, self.mark or 0.0)


class _Metric(NamedTuple):
    """A figure to draw the ladder by: the label of its button, and its axis' title with `{}` for the unit.

    `read` gives a rung's bar, None where the figure does not exist; `lines` mark values across all bars;
    `parts` name what bars are made of.
    """

    key: str
    label: str
    axis: str
    read: Callable[[Rung], _RungBar | None]
    units: numbers.Units = ((1.0, ""),)
    lines: tuple[tuple[float, str], ...] = ()
    parts: tuple[str, ...] = ()


def ladder_chart(run: Run, group: Group, ladder: SizeLadder, anchors: dict[str, str]) -> Chart:
    """A bar per kernel for each figure the reader can choose, the headline and the fastest kernel first.

    Of many kernels the slower ones are folded: the fastest, the references and the first rung stay, and of
    one that another chooses the faster of the two.
    """
    rungs = sorted(ladder.rungs, key=lambda rung: standing(run, rung.case))
    first = next((rung for rung in ladder.rungs if not rung.is_reference), None)
    ran = [rung.case.ran for rung in rungs]
    once = [place for place, kernel in enumerate(ran) if kernel not in ran[:place]]
    open_bars = once[:_OPEN_BARS] if len(rungs) > _MANY_BARS else range(len(rungs))
    shown = [place in open_bars or rung.is_reference or rung is first for place, rung in enumerate(rungs)]
    rows = [
        {**_row(run, rung, anchors), "rung": ladder.rungs.index(rung), "folded": not open_}
        for rung, open_ in zip(rungs, shown, strict=True)
    ]
    metrics = _metrics(run, group, ladder)
    return {
        "kind": "bars",
        "title": f"Ladder at {ladder.size.label}, {group.title}",
        "rows": rows,
        "choices": [found for metric in metrics if (found := _bars(metric, rungs, shown))],
    }


def _metrics(run: Run, group: Group, ladder: SizeLadder) -> Iterator[_Metric]:
    """Rates and times on a GPU; modelled times and bounds anywhere."""
    flops = group.rate_is_flops
    roof = limit_of(ladder.size.problem, run.devices[ladder.size.device])

    def rates(rung: Rung) -> _RungBar | None:
        speed = rung.speed
        if speed is None:
            return None
        told = [_rate_text(run, rung.case), numbers.time_us(speed.median_us)]
        if speed.pct_of_limit is not None:
            # Tensor cores have a peak of their own, which is not drawn.
            own = speed.limit.name if speed.limit and roof and speed.limit.name != roof.name else ""
            told.append(f"{numbers.percent(speed.pct_of_limit)} of peak {own}".rstrip())
        if rung.gain is not None:
            told.append(f"{numbers.ratio(rung.gain)} over {rung.previous}")
        low, high = (
            rate_at(rung.case.problem, us, flops) for us in (speed.timing.p95_us, speed.timing.p05_us)
        )
        return _RungBar(rate(speed, flops), told, low, high)

    def times(rung: Rung) -> _RungBar | None:
        speed = rung.speed
        if speed is None:
            return None
        told = [numbers.time_us(speed.median_us), _rate_text(run, rung.case)]
        return _RungBar(speed.median_us, told, speed.timing.p05_us, speed.timing.p95_us, brief=1)

    def bounds(rung: Rung) -> _RungBar | None:
        limits = rung.limits
        if limits is None:
            return None
        least, measured = limits.least_us, limits.measured_us
        told = [numbers.time_us(least), limits.binding.short]
        if measured is not None:
            told.append(f"{numbers.percent(100 * least / measured)} of {numbers.time_us(measured)}")
        return _RungBar(least, told, mark=measured)

    def modelled(rung: Rung) -> _RungBar | None:
        model = rung.case.model
        if model is None:
            return None
        measured = rung.speed.median_us if rung.speed else None
        told = [numbers.time_us(model.median_us, 2)]
        told += [f"measured {numbers.time_us(measured)}"] if measured else []
        told += [rung.limiter.brief] if rung.limiter else []
        parts = tuple(model.median_us * model.reasons.get(name, 0.0) for name in REASONS)
        held = parts if any(parts) else ()
        return _RungBar(model.median_us, told, model.low_us, model.high_us, measured, held, brief=1)

    timed = run.backend == "gpu"
    if timed:
        # Bandwidths are compared in GB/s throughout.
        units = numbers.COMPUTE_UNITS if flops else ((1.0, "GB/s"),)
        axis = "{} from the cold median; whiskers p05–p95; longer is better"
        yield _Metric("rate", "Rate", axis, rates, units, _roofs(run, ladder, roof, flops))
        axis = "{}, cold median; whiskers p05–p95; shorter is better"
        yield _Metric("time", "Time", axis, times, numbers.TIME_UNITS)
    marked = "; a line marks the measured time" if timed else ", no measured time"
    axis = f"{{}} as modelled{marked}; whiskers: what the model may err by"
    parts = tuple(label for label, _ in REASONS.values())
    yield _Metric("model", "Modelled", axis, modelled, numbers.TIME_UNITS, parts=parts)
    yield _Metric("bound", "Bound", f"{{}} at least, by exact counts{marked}", bounds, numbers.TIME_UNITS)


def _rate_text(run: Run, case: Measurement) -> str:
    return cell_of(headline_rate(run, case), Subject(run, case)).text or ""


def _roofs(run: Run, ladder: SizeLadder, limit: Limit | None, flops: bool) -> tuple[tuple[float, str], ...]:
    """The theoretical roof over this size as a rate, and the measured copy bandwidth where it bounds that."""
    if limit is None:
        return ()
    if flops and limit.gflops is not None:
        return ((limit.gflops, f"theoretical peak {limit.name} {numbers.gflops(limit.gflops)}"),)
    roof = ((limit.gbps, f"theoretical peak {limit.name} {numbers.gbps(limit.gbps)}"),)
    copy = run.devices[ladder.size.device].measured_copy_bandwidth_gbps
    return (*roof, (copy, f"measured copy {numbers.gbps(copy)}")) if copy else roof


def _bars(metric: _Metric, rungs: list[Rung], shown: list[bool]) -> Chart | None:
    """One figure of every rung, None where none has it.

    Folded bars do not set the axis.
    """
    read = [metric.read(rung) for rung in rungs]
    known = [bar for bar in read if bar is not None]
    if not known:
        return None
    divisor, unit = numbers.unit_for(max(max(bar.value, bar.mark or 0.0) for bar in known), metric.units)
    longest = max((bar.end for bar in compress(read, shown) if bar), default=0.0)
    longest = longest or max(bar.end for bar in known)
    high = max([longest, *(value for value, _ in metric.lines if value <= _NEAR * longest)]) / divisor or 1.0
    return {
        "key": metric.key,
        "label": metric.label,
        "x": _axis(metric.axis.format(unit), 0.0, high),
        "lines": [{"value": value / divisor, "label": label} for value, label in metric.lines],
        "parts": list(metric.parts) if any(bar.parts for bar in known) else [],
        "without": f"not {'modelled' if metric.key == 'model' else 'measured'}",
        "bars": [None if bar is None else _bar(bar, divisor) for bar in read],
    }


def _bar(bar: _RungBar, divisor: float) -> Chart:
    low, high = (bar.value if end is None else end for end in (bar.low, bar.high))
    return {
        "value": bar.value / divisor,
        "low": low / divisor,
        "high": high / divisor,
        "text": visible(" · ".join(bar.told)),
        "short": visible(" · ".join(bar.told[: bar.brief])),
        "mark": None if bar.mark is None else bar.mark / divisor,
        "end": bar.end / divisor,
        "parts": [part / divisor for part in bar.parts],
    }


def _row(run: Run, rung: Rung, anchors: dict[str, str]) -> Chart:
    status = status_of(run, rung.case)
    return {
        # The kernel that ran stands before what chose it.
        "name": visible(
            f"{rung.case.chosen} ({rung.kernel.id})" if rung.case.chosen else name_of(run, rung.kernel)
        ),
        "anchor": anchors[rung.kernel.id],
        "shape": visible(rung.kernel.title if rung.is_reference else block_phrase(rung.case)),
        "status": f"{status.mark} {status.word}",
        "usable": status.usable,
        "is_fault": status.tone == "bad",
        "reason": "" if status.usable else visible(rung.case.reason or ""),
        "reference": rung.is_reference,
        "ceiling": rung.is_ceiling,
        "fastest": rung.is_fastest,
    }


def scaling_chart(run: Run, group: Group, anchors: dict[str, str], telling: Sequence[str]) -> Chart | None:
    """Rates over the size of the problem, on a linear and on a logarithmic axis; None where sizes are one.

    Of many kernels the references and those that tell most are drawn; a closer look has the others.
    """
    rungs = (rung for size in group.sizes for rung in build_ladder(run, size).rungs)
    timed = ((rung, rung.speed) for rung in rungs if rung.speed is not None)
    held = grouped(timed, lambda found: found[0].kernel.id)
    edges = {size.problem.edge for size in group.sizes}
    if len(edges) < 2 or not held:
        return None
    flops = group.rate_is_flops
    write = numbers.gflops if flops else numbers.gbps
    largest = max(rate(speed, flops) for found in held.values() for _, speed in found)
    divisor, unit = numbers.unit_for(largest, numbers.COMPUTE_UNITS) if flops else (1.0, "GB/s")
    references = {kernel for kernel, found in held.items() if found[0][0].is_reference}
    few = len(held) <= _COLOURS
    order = sorted(held, key=lambda kernel: (kernel in references, held[kernel][0][0].kernel.rung))
    # Lines that are drawn from the start have colours of their own.
    ranked = sorted(order, key=lambda kernel: not (few or kernel in references or kernel in telling))
    drawn = []
    for kernel in order:
        look, is_reference = ranked.index(kernel), kernel in references
        is_drawn = few or is_reference or kernel in telling
        points = [
            (rung.case.problem, rate(speed, flops), speed.timing.p05_us, speed.timing.p95_us)
            for rung, speed in held[kernel]
        ]
        drawn.append(
            {
                **_series(run, kernel, anchors, look, is_reference, is_drawn),
                "line": "dashed" if is_reference else f"dash-{look // _COLOURS % _DASHES}",
                "x": [problem.edge for problem, *_ in points],
                "y": [value / divisor for _, value, *_ in points],
                "up": [max(0.0, rate_at(of, p05, flops) - value) / divisor for of, value, p05, _ in points],
                "down": [max(0.0, value - rate_at(of, p95, flops)) / divisor for of, value, _, p95 in points],
                "text": [f"{problem.label}: {write(value)}" for problem, value, *_ in points],
            }
        )
    widened = 10 ** (_MARGIN * (log10(max(edges) / min(edges)) or 1.0))
    shown = [item for item in drawn if item["shown"]]
    high = 1.05 * max(y + up for item in shown for y, up in zip(item["y"], item["up"], strict=True))
    least = min(y - down for item in shown for y, down in zip(item["y"], item["down"], strict=True))
    x = {
        **_axis("problem size (logarithmic)", min(edges) / widened, max(edges) * widened, True),
        "ticks": [[size.problem.edge, size.label] for size in group.sizes],
    }
    title = f"{unit}, cold median; whiskers p05–p95"
    low = min(least, high / 10) / 1.15 or high / 1e3
    axes = {"Linear": _axis(title, 0.0, high), "Logarithmic": _axis(title, low, high, True)}
    return {
        "kind": "lines",
        "title": f"Rate over size, {group.title}",
        "height": 340,
        "choices": [{"label": label, "x": x, "y": y, "series": drawn} for label, y in axes.items()],
    }


def roofline_chart(
    run: Run, group: Group, roofline: Roofline, anchors: dict[str, str], telling: Sequence[str]
) -> Chart:
    """Roofs and points of each level, for two logarithmic axes.

    The few kernels that tell most are drawn; a closer look has the others.
    """
    return {
        "kind": "lines",
        "title": f"Roofline, {group.title}",
        "height": 420,
        "choices": [_level(run, level, roofline.peak_gflops, anchors, telling) for level in roofline.levels],
    }


def telling_kernels(ladder: SizeLadder, winner: Rung | None) -> tuple[str, ...]:
    """The kernels that tell a ladder's story: winner, library, first rung, and the steps that gained most."""
    rungs = [rung.kernel.id for rung in ladder.rungs]
    first = next((rung.kernel.id for rung in ladder.rungs if not rung.is_reference), None)
    steps = sorted(steps_to(ladder, winner), key=lambda rung: -(rung.gain or 0.0)) if winner else []
    ends = [winner.kernel.id if winner else None, ladder.reference, first]
    found = dict.fromkeys((*ends, *(rung.kernel.id for rung in steps), *rungs))
    return tuple(key for key in found if key)[:_MOST_POINTS]


def _series(run: Run, kernel: str, anchors: dict[str, str], look: int, reference: bool, shown: bool) -> Chart:
    name = visible(name_of(run, kernel_record(run, kernel)))
    return {"name": name, "anchor": anchors[kernel], "look": look, "reference": reference, "shown": shown}


def _axis(title: str, low: float, high: float, logarithmic: bool = False) -> Chart:
    return {"title": title, "low": low, "high": high, "logarithmic": logarithmic}


def _level(run: Run, level: Level, peak: float, anchors: dict[str, str], telling: Sequence[str]) -> Chart:
    last = level.points[-1].size
    held = grouped(level.points, lambda point: point.kernel)
    order = sorted(held, key=lambda kernel: telling.index(kernel) if kernel in telling else len(telling))
    largest = {kernel: points[-1] for kernel, points in held.items() if points[-1].size == last}
    # Where none of the few has its bytes counted, what has is shown.
    drawn = [kernel for kernel in order if kernel in largest]
    drawn = [kernel for kernel in drawn if kernel in telling] or drawn[:_MOST_POINTS]
    shown = [largest[kernel] for kernel in drawn]
    ridges = [peak / gbps for gbps in level.gbps.values()]
    xs = [*(point.flop_per_byte for point in shown), *ridges]
    left, right = min(xs) / 4, 3 * max(xs)
    foot = min(*(point.gflops for point in shown), left * max(level.gbps.values()))
    rates = ", ".join(_RATES[by][0] for by in dict.fromkeys(point.by for point in shown))
    return {
        "label": level.label,
        "x": _axis(f"arithmetic intensity, FLOP per byte: {level.label} (logarithmic)", left, right, True),
        "y": _axis(
            f"TFLOP/s {rates} (logarithmic)",
            foot / 1.6e3,
            1.9e-3 * peak,
            True,
        ),
        "roofs": [
            {
                "name": f"measured {numbers.gbps(gbps)}"
                if measured
                else f"theoretical {numbers.gbps(gbps)}, compute peak {numbers.gflops(peak)}",
                "line": "roof measured" if measured else "roof",
                "x": [left, peak / gbps, *([] if measured else [right])],
                "y": [rate / 1e3 for rate in (left * gbps, peak, *([] if measured else [peak]))],
            }
            for measured, gbps in level.gbps.items()
        ],
        "series": [
            {
                **_series(run, kernel, anchors, look, held[kernel][0].is_reference, kernel in drawn),
                "open": held[kernel][-1].by != "time",
                "last": True,
                "x": [point.flop_per_byte for point in held[kernel]],
                "y": [point.gflops / 1e3 for point in held[kernel]],
                "text": [
                    f"{point.size}: {_RATES[point.by][1]}{numbers.gflops(point.gflops)},"
                    f" {numbers.significant(point.flop_per_byte)} FLOP/byte"
                    for point in held[kernel]
                ],
            }
            for look, kernel in enumerate(order)
        ],
    }
