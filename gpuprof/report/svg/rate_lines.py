# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Rates over the size of the problem: a line for each kernel, on a linear and on a logarithmic axis."""

from math import log10
from typing import Any

from markupsafe import Markup

from gpuprof.report.svg.elements import element, joined
from gpuprof.report.svg.plane import (
    Frame,
    Plane,
    drawn,
    key,
    mark,
    series_class,
    shape,
    stretched,
    swatch,
)
from gpuprof.report.svg.scales import Scale

_HEIGHT = 340.0
#: Share of the axis' span that is left free at both ends.
_MARGIN = 0.04
_DASHES = 4


def rate_lines(chart: dict[str, Any], logarithmic: bool) -> Markup:
    """The kernels that are shown from the start.

    Args:
        chart: As `charts.scaling_chart` makes it.
        logarithmic: Whether the rates' axis is logarithmic, as the sizes' is.
    """
    shown = [(item["look"], item) for item in chart["series"] if item["shown"]]
    plane = _plane(chart, [item for _, item in shown], logarithmic)
    content = [stretched(*(_line(plane, index, item) for index, item in shown))]
    for index, item in shown:
        content += _whiskers(plane, index, item)
    for index, item in shown:
        content += _marks(plane, index, item)
    last = "; ".join(f"{item['name']} {item['text'][-1]}" for _, item in shown)
    frame = Frame(
        title=f"Rate over size, {chart['title']}",
        description=f"{len(shown)} of {len(chart['series'])} kernels, each at its largest size: {last}.",
        x_title="problem size (logarithmic)",
        y_title=f"{chart['unit']}, cold median; whiskers p05–p95",
        x_ticks=tuple((edge, label) for edge, label in chart["ticks"]),
    )
    legend = [
        element(
            "a",
            swatch(shape(index, item["reference"]), _classes(index, item), lined=True),
            item["name"],
            href=f"#{item['anchor']}",
        )
        for index, item in shown
    ]
    return joined([key(legend), drawn(plane, content, frame)])


def _plane(chart: dict[str, Any], shown: list[dict[str, Any]], logarithmic: bool) -> Plane:
    edges = [edge for edge, _ in chart["ticks"]]
    span = log10(max(edges) / min(edges)) or 1.0
    widened = 10 ** (_MARGIN * span)
    tops = [y + up for item in shown for y, up in zip(item["y"], item["up"], strict=True)]
    lows = [y - down for item in shown for y, down in zip(item["y"], item["down"], strict=True)]
    high = max(tops) * 1.05
    low = min(min(lows), high / 10) / 1.15 if logarithmic else 0.0
    return Plane(
        Scale(min(edges) / widened, max(edges) * widened, logarithmic=True),
        Scale(low or high / 1e3, high, logarithmic=True) if logarithmic else Scale(0.0, high),
        _HEIGHT,
    )


def _classes(index: int, item: dict[str, Any]) -> str:
    dash = " dashed" if item["reference"] else f" dash-{index // 8 % _DASHES}"
    return series_class(index, item["reference"]) + dash


def _line(plane: Plane, index: int, item: dict[str, Any]) -> Markup:
    points = list(zip(item["x"], item["y"], strict=True))
    return element("path", d=plane.path(points), class_=_classes(index, item))


def _whiskers(plane: Plane, index: int, item: dict[str, Any]) -> list[Markup]:
    found = []
    for x, y, up, down in zip(item["x"], item["y"], item["up"], item["down"], strict=True):
        (across, top), (_, foot) = plane.at(x, y + up), plane.at(x, y - down)
        if top != foot:
            class_ = f"whisker {series_class(index, item['reference'])}"
            found.append(element("line", x1=across, x2=across, y1=top, y2=foot, class_=class_))
    return found


def _marks(plane: Plane, index: int, item: dict[str, Any]) -> list[Markup]:
    return [
        mark(
            plane.at(x, y),
            shape(index, item["reference"]),
            series_class(index, item["reference"]),
            f"{item['name']}, {text}",
        )
        for x, y, text in zip(item["x"], item["y"], item["text"], strict=True)
    ]
