# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What each chart shows, as plain JSON data: what `svg` draws, and the page's script to look closer.

Every text is written here, so that a chart and the table beside it never disagree about a figure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from math import log10
from typing import Any

from markupsafe import Markup

from gpuprof.analysis import numbers
from gpuprof.analysis.groups import Group, kernel_record, name_of
from gpuprof.analysis.ladder import Rung, SizeLadder
from gpuprof.analysis.parameters import Panel, ParameterPoint, ParameterSweep
from gpuprof.analysis.roofline import Level, Roofline, RooflinePoint
from gpuprof.analysis.scaling import Series
from gpuprof.analysis.status import status_of
from gpuprof.report.cells import block_phrase
from gpuprof.report.ladder_table import steps_to
from gpuprof.report.metrics import Bar, Metric, ladder_metrics
from gpuprof.report.svg.drawings import drawings
from gpuprof.results import Run
from gpuprof.text import visible

Chart = dict[str, Any]

#: Figures that differ by more than this factor are coloured by their logarithm: one must not fade the rest.
_WIDE = 4.0
#: A limit up to so many times the longest bar is worth the axis that it takes.
_NEAR = 2.5
#: Foot of an axis of ratios: the fewest possible is 1.
_LOG_FOOT = 0.5
#: From so many bars on, those after the fastest few are folded.
_MANY_BARS, _OPEN_BARS = 14, 10
_MOST_POINTS = 7
#: Series beyond the colours are told apart by their dashes.
_COLOURS, _DASHES = 8, 4
#: Share of an axis' span that is left free at both ends.
_MARGIN = 0.04


@dataclass(frozen=True, slots=True)
class ChartView:
    """A chart as the page shows it.

    Args:
        key: Its id on the page.
        choices: Labels of its drawings, where there are several.
        rows: How many bars it has, where some of them are folded; else 0.
        drawing: The first.
        data: What the page's script draws to look closer, with the other drawings.
    """

    key: str
    choices: tuple[str, ...]
    rows: int
    drawing: Markup
    data: Chart


def chart_view(key: str, chart: Chart) -> ChartView:
    """A chart and its drawings."""
    named = {**chart, "id": key}
    drawn = drawings(named)
    choices = tuple(choice["label"] for choice in chart["choices"])
    rows = chart.get("rows", ())
    folded = len(rows) if any(row["folded"] for row in rows) else 0
    return ChartView(key, choices, folded, drawn[0], {**named, "drawings": drawn})


def ladder_chart(run: Run, group: Group, ladder: SizeLadder, anchors: dict[str, str]) -> Chart:
    """A bar per kernel for each figure the reader can choose, the fastest kernel first.

    Of many kernels the slower ones are folded: the fastest, the references and the first rung stay.
    """
    rungs = sorted(ladder.rungs, key=_standing)
    first = next((rung for rung in ladder.rungs if not rung.is_reference), None)
    open_bars = _OPEN_BARS if len(rungs) > _MANY_BARS else len(rungs)
    shown = [place < open_bars or rung.is_reference or rung is first for place, rung in enumerate(rungs)]
    return {
        "kind": "bars",
        "title": f"Ladder at {ladder.size.label}, {group.title}",
        "rows": [
            {
                **_row(run, rung, anchors),
                "rung": ladder.rungs.index(rung),
                "folded": not shown[place],
            }
            for place, rung in enumerate(rungs)
        ],
        "choices": [_bars(metric, rungs, shown) for metric in ladder_metrics(run, group, ladder)],
    }


def _standing(rung: Rung) -> float:
    """By time, else by bound; what has neither stands last."""
    if rung.speed is not None:
        return rung.speed.median_us
    return rung.limits.least_us if rung.limits is not None else float("inf")


def scaling_chart(run: Run, group: Group, series: tuple[Series, ...], anchors: dict[str, str]) -> Chart:
    """Rates over the size of the problem, on a linear and on a logarithmic axis."""
    flops = group.rate_is_flops
    write = numbers.gflops if flops else numbers.gbps
    largest = max(point.rate for item in series for point in item.points)
    divisor, unit = numbers.unit_for(largest, numbers.COMPUTE_UNITS) if flops else (1.0, "GB/s")
    # Lines that are drawn from the start have colours of their own.
    ranked = sorted(series, key=lambda item: not item.is_shown)
    drawn = [
        {
            **_series(run, item.kernel, anchors, ranked.index(item), item.is_reference, item.is_shown),
            "line": "dashed" if item.is_reference else f"dash-{ranked.index(item) // _COLOURS % _DASHES}",
            "x": [point.edge for point in item.points],
            "y": [point.rate / divisor for point in item.points],
            "up": [max(0.0, point.high - point.rate) / divisor for point in item.points],
            "down": [max(0.0, point.rate - point.low) / divisor for point in item.points],
            "text": [f"{point.size}: {write(point.rate)}" for point in item.points],
        }
        for item in series
    ]
    edges = [size.problem.edge for size in group.sizes]
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

    Args:
        run: The run.
        group: What is computed.
        roofline: Its roofs and points.
        anchors: Of kernels.
        telling: The few kernels that are drawn; a closer look has the others.
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
    held: dict[str, list[RooflinePoint]] = {}
    for point in level.points:
        held.setdefault(point.kernel, []).append(point)
    order = sorted(held, key=lambda kernel: telling.index(kernel) if kernel in telling else len(telling))
    largest = {kernel: points[-1] for kernel, points in held.items() if points[-1].size == last}
    # Where none of the few has its bytes counted, what has is shown.
    drawn = [kernel for kernel in order if kernel in largest]
    drawn = [kernel for kernel in drawn if kernel in telling] or drawn[:_MOST_POINTS]
    shown = [largest[kernel] for kernel in drawn]
    ridges = [peak / roof.gbps for roof in level.memory_roofs]
    xs = [*(point.flop_per_byte for point in shown), *ridges]
    left, right = min(xs) / 4, 3 * max(xs)
    foot = min(*(point.gflops for point in shown), left * max(roof.gbps for roof in level.memory_roofs))
    bound = any(point.is_bound for point in shown)
    return {
        "label": level.label,
        "x": _axis(f"arithmetic intensity, FLOP per byte: {level.label} (logarithmic)", left, right, True),
        "y": _axis(
            f"GFLOP/s {'at most, by bounds' if bound else 'cold median'} (logarithmic)",
            foot / 1.6,
            1.9 * peak,
            True,
        ),
        "roofs": [
            {
                "name": ("measured " if roof.measured else "theoretical ") + numbers.gbps(roof.gbps)
                if roof.measured
                else f"theoretical {numbers.gbps(roof.gbps)}, compute peak {numbers.gflops(peak)}",
                "line": "roof measured" if roof.measured else "roof",
                "x": [left, peak / roof.gbps, *([] if roof.measured else [right])],
                "y": [left * roof.gbps, peak, *([] if roof.measured else [peak])],
            }
            for roof in level.memory_roofs
        ],
        "series": [
            {
                **_series(run, kernel, anchors, look, held[kernel][0].is_reference, kernel in drawn),
                "open": held[kernel][-1].is_bound,
                "last": True,
                "x": [point.flop_per_byte for point in held[kernel]],
                "y": [point.gflops for point in held[kernel]],
                "text": [
                    f"{point.size}: {'at most ' if point.is_bound else ''}{numbers.gflops(point.gflops)},"
                    f" {numbers.significant(point.flop_per_byte)} FLOP/byte"
                    for point in held[kernel]
                ],
            }
            for look, kernel in enumerate(order)
        ],
        "steps": _steps(level, last, drawn),
    }


def _steps(level: Level, last: str, drawn: list[str]) -> list[list[float]]:
    """An arrow from each kernel that is drawn to the next that is, over those between; [x, y, x, y]."""
    points = {point.kernel: point for point in level.points if point.size == last}
    found = []
    for kernel in drawn:
        before, seen = points[kernel].after, {kernel}
        while before in points and before not in drawn and before not in seen:
            seen.add(before)
            before = points[before].after
        if before in drawn and before != kernel:
            ends = (points[before], points[kernel])
            place = [value for end in ends for value in (end.flop_per_byte, end.gflops)]
            # Between points that are one it has no direction, and is none.
            if place[:2] != place[2:]:
                found.append(place)
    return found


def parameter_chart(sweep: ParameterSweep, panel: Panel) -> Chart:
    """One of several small charts: bars over one parameter, or a matrix over two.

    Colours and lengths share one scale within a size.
    """
    fixed = ", ".join(f"{name}={value}" for name, value in panel.fixed.items())
    values = [point.value for point in sweep.points if point.value is not None]
    points = panel.points
    return {
        "kind": "matrix" if sweep.ys else "row",
        "logarithmic": bool(values) and 0.0 < _WIDE * min(values) < max(values),
        "caption": f"{sweep.size}{', ' if fixed else ''}{visible(fixed)}",
        "figure": sweep.figure.label,
        "reversed": sweep.figure.better == "lower",
        "x_title": visible(sweep.names[0]),
        "y_title": visible(sweep.names[1]) if sweep.ys else "",
        "xs": list(sweep.xs),
        "ys": list(sweep.ys),
        "low": min(values, default=0.0),
        "high": max(values, default=0.0),
        "z": [[point.value if point else None for point in row] for row in points],
        "text": [[parameter_text(sweep, point) for point in row] for row in points],
        "best": [[bool(point and point.is_best) for point in row] for row in points],
        "default": [[bool(point and point.is_default) for point in row] for row in points],
    }


def parameter_text(sweep: ParameterSweep, point: ParameterPoint | None) -> str:
    """A point's figure, or how it ended; empty where it did not run."""
    if point is None:
        return ""
    return point.case.outcome if point.value is None else sweep.figure.write(point.value)


def _row(run: Run, rung: Rung, anchors: dict[str, str]) -> Chart:
    status = status_of(run, rung.case)
    return {
        # The kernel that ran stands before what chose it.
        "name": visible(
            f"{rung.case.chosen} ({rung.kernel.id})" if rung.case.chosen else name_of(run, rung.kernel)
        ),
        "anchor": anchors[rung.kernel.id],
        "shape": visible(rung.kernel.title if rung.is_reference else block_phrase(rung.case)),
        "status": f"{status.symbol} {status.word}",
        "usable": status.usable,
        "is_fault": status.tone == "bad",
        "reason": "" if status.usable else visible(rung.case.reason or ""),
        "reference": rung.is_reference,
        "ceiling": rung.is_ceiling,
        "fastest": rung.is_fastest,
    }


def _bars(metric: Metric, rungs: list[Rung], shown: list[bool]) -> Chart:
    """One figure of every rung; folded bars that are much longer than all others do not set the axis."""

    def scaled(bar: Bar) -> Chart:
        low, value, high = (end / metric.divisor for end in (bar.low, bar.value, bar.high))
        return {
            "value": value,
            "low": low,
            "high": high,
            "text": visible(bar.text),
            "short": visible(bar.short),
            "mark": None if bar.mark is None else bar.mark / metric.divisor,
            # Where the last thing drawn of it ends.
            "end": max(high, value, (bar.mark or 0.0) / metric.divisor),
        }

    bars = [scaled(bar) if (bar := metric.read(rung)) else None for rung in rungs]
    lines = [(value / metric.divisor, label) for value, label in metric.lines]
    longest = max((bar["end"] for bar in bars if bar), default=0.0)
    longest_shown = max((bar["end"] for bar in compress(bars, shown) if bar), default=0.0)
    if longest > _NEAR * longest_shown > 0:
        longest = longest_shown
    high = max([longest, *(value for value, _ in lines if value <= _NEAR * longest)]) or 1.0
    low = _LOG_FOOT if metric.logarithmic else 0.0
    title = f"{metric.axis}; logarithmic" if metric.logarithmic else metric.axis
    return {
        "key": metric.key,
        "label": metric.label,
        "x": _axis(title, low, max(high, 2 * low), metric.logarithmic),
        "lines": [{"value": value, "label": label} for value, label in lines],
        "bars": bars,
    }
