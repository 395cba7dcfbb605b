# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What each chart shows, as plain JSON data: what `svg` draws, and the page's script to look closer.

Every text is written here, so that a chart and the table beside it never disagree about a figure.
"""

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from gpuprof.analysis import numbers
from gpuprof.analysis.blocks import Sweep
from gpuprof.analysis.groups import Group
from gpuprof.analysis.ladder import Ladder, Rung
from gpuprof.analysis.parameters import Panel, ParameterSweep, Point
from gpuprof.analysis.roofline import Level, Roofline
from gpuprof.analysis.scaling import Series
from gpuprof.analysis.status import status_of
from gpuprof.report.cells import block_phrase
from gpuprof.report.metrics import Bar, Metric, ladder_metrics
from gpuprof.report.svg.drawings import drawings
from gpuprof.results import Run
from gpuprof.text import visible

Chart = dict[str, Any]

#: Figures that differ by more than this factor are coloured by their logarithm: one must not fade the rest.
_WIDE = 4.0

SWEEP_LABELS = {
    "gflops": "GFLOP/s",
    "gbps": "GB/s",
    "sector_ratio": "sectors requested, × minimum",
    "theoretical_occupancy_pct": "theoretical occupancy, %",
}


@dataclass(frozen=True, slots=True)
class ChartView:
    """A chart as the page shows it.

    Args:
        key: Its id on the page.
        choices: Labels of its drawings, where there are several.
        drawing: The first.
        data: What the page's script draws to look closer, with the other drawings.
    """

    key: str
    choices: tuple[str, ...]
    drawing: Markup
    data: Chart


def chart_view(key: str, chart: Chart) -> ChartView:
    """A chart and its drawings."""
    named = {**chart, "id": key}
    drawn = drawings(named)
    choices = tuple(metric["label"] for metric in chart["metrics"])
    return ChartView(key, choices, drawn[0], {**named, "drawings": drawn})


def ladder_chart(run: Run, group: Group, ladder: Ladder, anchors: dict[str, str]) -> Chart:
    """A bar per kernel for each figure the reader can choose."""
    metrics = ladder_metrics(run, group, ladder)
    return {
        "kind": "ladder",
        "title": f"Ladder at {ladder.size.label}, {group.title}",
        "rows": [_row(run, rung, anchors) for rung in ladder.rungs],
        "metrics": [_metric(metric, ladder) for metric in metrics],
    }


def scaling_chart(group: Group, series: tuple[Series, ...], anchors: dict[str, str]) -> Chart:
    """Rates over the size of the problem."""
    flops = group.rate_is_flops
    write = numbers.gflops if flops else numbers.gbps
    largest = max(point.rate for item in series for point in item.points)
    divisor, unit = numbers.unit_for(largest, numbers.COMPUTE_UNITS) if flops else (1.0, "GB/s")
    # Lines that are drawn from the start have colours of their own.
    ranked = sorted(series, key=lambda item: not item.is_shown)
    return {
        "kind": "scaling",
        "title": group.title,
        "unit": unit,
        "metrics": [{"label": "Linear"}, {"label": "Logarithmic"}],
        "ticks": [[size.problem.edge, size.label] for size in group.sizes],
        "series": [
            {
                "name": visible(item.kernel),
                "anchor": anchors[item.kernel],
                "look": ranked.index(item),
                "reference": item.is_reference,
                "shown": item.is_shown,
                "x": [point.edge for point in item.points],
                "y": [point.rate / divisor for point in item.points],
                "up": [max(0.0, point.high - point.rate) / divisor for point in item.points],
                "down": [max(0.0, point.rate - point.low) / divisor for point in item.points],
                "text": [f"{point.size}: {write(point.rate)}" for point in item.points],
            }
            for item in series
        ],
    }


def roofline_chart(group: Group, roofline: Roofline, anchors: dict[str, str]) -> Chart:
    """Roofs and points of each level, for two logarithmic axes."""
    return {
        "kind": "roofline",
        "title": group.title,
        "peak": {
            "value": roofline.peak_gflops,
            "label": f"theoretical compute peak {numbers.gflops(roofline.peak_gflops)}",
        },
        "metrics": [{"label": level.label} for level in roofline.levels],
        "levels": [_level(level, anchors) for level in roofline.levels],
    }


def _level(level: Level, anchors: dict[str, str]) -> Chart:
    last = level.points[-1].size
    places = {(point.kernel, point.size): index for index, point in enumerate(level.points)}
    return {
        "label": level.label,
        "roofs": [
            {
                "gbps": roof.gbps,
                "measured": roof.measured,
                "label": ("measured " if roof.measured else "theoretical ") + numbers.gbps(roof.gbps),
            }
            for roof in level.memory_roofs
        ],
        "points": [
            {
                "kernel": visible(point.kernel),
                "anchor": anchors[point.kernel],
                "size": point.size,
                "x": point.flop_per_byte,
                "y": point.gflops,
                "reference": point.is_reference,
                "bound": point.is_bound,
                "last": point.size == last,
                "text": ("at most " if point.is_bound else "") + numbers.gflops(point.gflops),
                "intensity": f"{numbers.significant(point.flop_per_byte)} FLOP/byte",
            }
            for point in level.points
        ],
        "steps": [
            [places[point.after, point.size], index]
            for index, point in enumerate(level.points)
            if point.size == last and (point.after, point.size) in places
        ],
    }


def sweep_chart(sweep: Sweep) -> Chart:
    """A matrix with a text in each cell."""
    values = [cell.value for row in sweep.cells for cell in row if cell and cell.value is not None]
    texts = [
        [
            "" if cell is None else cell.case.outcome if cell.value is None else sweep_text(cell.value)
            for cell in row
        ]
        for row in sweep.cells
    ]
    return {
        "kind": "matrix",
        "logarithmic": False,
        "caption": f"{SWEEP_LABELS[sweep.metric]}: {visible(sweep.kernel)} at {sweep.size}",
        "reversed": sweep.lower_is_better,
        "x_title": "block.x",
        "y_title": "block.y",
        "xs": list(sweep.xs),
        "ys": list(sweep.ys),
        "low": min(values, default=0.0),
        "high": max(values, default=0.0),
        "z": [[cell.value if cell else None for cell in row] for row in sweep.cells],
        "text": texts,
        "best": [[bool(cell and cell.is_best) for cell in row] for row in sweep.cells],
        "default": [[False for _ in row] for row in sweep.cells],
    }


def parameter_chart(sweep: ParameterSweep, panel: Panel) -> Chart:
    """One of several small charts: bars over one parameter, or a matrix over two.

    Colours and lengths share one scale within a size.
    """
    fixed = ", ".join(f"{name}={value}" for name, value in panel.fixed.items())
    values = [point.value for point in sweep.points if point.value is not None]
    points = panel.points
    return {
        "kind": "matrix" if sweep.ys else "bars",
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


def parameter_text(sweep: ParameterSweep, point: Point | None) -> str:
    """A point's figure, or how it ended; empty where it did not run."""
    if point is None:
        return ""
    return point.case.outcome if point.value is None else sweep.figure.write(point.value)


def sweep_text(value: float) -> str:
    """A cell's figure without its unit, which the chart's title carries."""
    return numbers.significant(value, 4 if value >= 1000 else 3)


def _row(run: Run, rung: Rung, anchors: dict[str, str]) -> Chart:
    status = status_of(run, rung.case)
    return {
        "name": visible(rung.kernel.id),
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


def _metric(metric: Metric, ladder: Ladder) -> Chart:
    def scaled(bar: Bar) -> Chart:
        low, value, high = (end / metric.divisor for end in (bar.low, bar.value, bar.high))
        return {
            "value": value,
            "low": low,
            "high": high,
            "text": visible(bar.text),
            "short": visible(bar.short),
            "mark": None if bar.mark is None else bar.mark / metric.divisor,
        }

    bars = [metric.read(rung) for rung in ladder.rungs]
    return {
        "key": metric.key,
        "label": metric.label,
        "axis": f"{metric.axis}; logarithmic" if metric.logarithmic else metric.axis,
        "logarithmic": metric.logarithmic,
        "lines": [{"value": value / metric.divisor, "label": label} for value, label in metric.lines],
        "bars": [scaled(bar) if bar else None for bar in bars],
    }
