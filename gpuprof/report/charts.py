# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What each chart shows, as plain JSON data; colours and layout belong to the page's script.

Every text is written here, so that a chart and the table beside it never disagree about a figure.
"""

from typing import Any

from gpuprof.analysis import numbers
from gpuprof.analysis.blocks import Sweep
from gpuprof.analysis.groups import Group
from gpuprof.analysis.ladder import Ladder, Rung
from gpuprof.analysis.roofline import Roofline
from gpuprof.analysis.scaling import Series
from gpuprof.analysis.status import status_of
from gpuprof.report.cells import block_phrase
from gpuprof.report.metrics import Bar, Metric, ladder_metrics
from gpuprof.results import Run
from gpuprof.text import visible

Chart = dict[str, Any]

SWEEP_LABELS = {
    "gflops": "GFLOP/s",
    "gbps": "GB/s",
    "sector_ratio": "sectors requested, × minimum",
    "theoretical_occupancy_pct": "theoretical occupancy, %",
}


def ladder_chart(run: Run, group: Group, ladder: Ladder, anchors: dict[str, str]) -> Chart:
    """A bar per kernel for each figure the reader can choose."""
    metrics = ladder_metrics(run, group, ladder)
    return {
        "kind": "ladder",
        "rows": [_row(run, rung, anchors) for rung in ladder.rungs],
        "metrics": [_metric(metric, ladder) for metric in metrics],
    }


def scaling_chart(group: Group, series: tuple[Series, ...]) -> Chart:
    """Rates over the size of the problem."""
    flops = group.rate_is_flops
    write = numbers.gflops if flops else numbers.gbps
    largest = max(point.rate for item in series for point in item.points)
    divisor, unit = numbers.unit_for(largest, numbers.COMPUTE_UNITS) if flops else (1.0, "GB/s")
    return {
        "kind": "scaling",
        "unit": unit,
        "metrics": [{"label": "Linear"}, {"label": "Logarithmic"}],
        "ticks": [[size.problem.edge, size.label] for size in group.sizes],
        "series": [
            {
                "name": visible(item.kernel),
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


def roofline_chart(roofline: Roofline) -> Chart:
    """Roofs and points, for two logarithmic axes."""
    return {
        "kind": "roofline",
        "peak": {
            "value": roofline.peak_gflops,
            "label": f"theoretical compute peak {numbers.gflops(roofline.peak_gflops)}",
        },
        "roofs": [
            {
                "gbps": roof.gbps,
                "measured": roof.measured,
                "label": ("measured copy " if roof.measured else "theoretical ") + numbers.gbps(roof.gbps),
            }
            for roof in roofline.memory_roofs
        ],
        "points": [
            {
                "kernel": visible(point.kernel),
                "size": point.size,
                "x": point.flop_per_byte,
                "y": point.gflops,
                "reference": point.is_reference,
                "text": numbers.gflops(point.gflops),
                "intensity": f"{numbers.significant(point.flop_per_byte)} FLOP/byte",
            }
            for point in roofline.points
        ],
    }


def sweep_chart(sweep: Sweep) -> Chart:
    """A matrix with a text in each cell."""
    return {
        "kind": "heat",
        "label": SWEEP_LABELS[sweep.metric],
        "reversed": sweep.lower_is_better,
        "xs": list(sweep.xs),
        "ys": list(sweep.ys),
        "z": [[cell.value if cell else None for cell in row] for row in sweep.cells],
        "text": [
            [
                "" if cell is None else cell.case.outcome if cell.value is None else sweep_text(cell.value)
                for cell in row
            ]
            for row in sweep.cells
        ],
        "best": [[bool(cell and cell.is_best) for cell in row] for row in sweep.cells],
    }


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
