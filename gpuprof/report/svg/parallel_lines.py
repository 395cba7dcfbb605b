# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Points of many parameters as lines across parallel axes: one axis a parameter, the figure on the last."""

from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from gpuprof.report.svg.elements import element, joined, place
from gpuprof.report.svg.scales import Scale

_HEIGHT = 300
#: Shares of the height that the axes leave free above, for their names, and below.
_TOP, _FOOT = 0.12, 0.05
#: Shares of the width that the first axis stands from the left, and the last one from the right.
_LEFT, _RIGHT = 0.05, 0.15


@dataclass(frozen=True, slots=True)
class Line:
    """One point.

    Args:
        values: What it has on each axis; empty for an axis that it has no value of.
        figure: On the last axis, above 0.
        label: What it is, with its figure.
        kind: `best`, `default` or nothing.
    """

    values: tuple[str, ...]
    figure: float
    label: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Lines:
    """A drawing's content.

    Args:
        title: Its title.
        description: What it shows, for those who do not see it.
        axes: Names of the axes, each with its values from the foot up.
        figure: Name of the last axis; the lowest figure stands on top.
        lowest: Its lowest figure, written out.
        highest: Its highest.
        lines: The points, the best first.
    """

    title: str
    description: str
    axes: tuple[tuple[str, tuple[str, ...]], ...]
    figure: str
    lowest: str
    highest: str
    lines: tuple[Line, ...]


def parallel_lines(content: Lines) -> Markup:
    """The drawing."""
    count = len(content.axes) + 1
    xs = [_LEFT + (1 - _LEFT - _RIGHT) * number / (count - 1) for number in range(count)]
    parts = [element("title", content.title), element("desc", content.description)]
    labels: list[Markup] = []
    for x, (name, values) in zip(xs, content.axes, strict=False):
        parts.append(_axis(x))
        labels += _labels(
            x, name, [(text, _height(number, len(values))) for number, text in enumerate(values)]
        )
    parts.append(_axis(xs[-1]))
    labels += _labels(xs[-1], content.figure, [(content.lowest, _TOP), (content.highest, 1 - _FOOT)])
    figures = [line.figure for line in content.lines]
    low, high = min(figures), max(figures)
    scale = Scale(low, max(high, low * 1.01), logarithmic=True)
    # The best are drawn last, above the others.
    for line in reversed(content.lines):
        ys = [
            _height(values.index(value), len(values)) if value in values else None
            for value, (_, values) in zip(line.values, content.axes, strict=True)
        ]
        ys.append(_TOP + (1 - _TOP - _FOOT) * scale.share(line.figure))
        parts.append(_drawn(line, [(x, y) for x, y in zip(xs, ys, strict=True) if y is not None]))
    return element("svg", *parts, *labels, class_="parallel", width="100%", height=_HEIGHT, role="img")


def _height(number: int, count: int) -> float:
    """The place of one of an axis' values, the first at its foot."""
    share = number / (count - 1) if count > 1 else 0.5
    return 1 - _FOOT - (1 - _TOP - _FOOT) * share


def _axis(x: float) -> Markup:
    across = place(x)
    return element("line", x1=across, x2=across, y1=place(_TOP), y2=place(1 - _FOOT), class_="axis")


def _labels(x: float, name: str, values: list[tuple[str, float]]) -> list[Markup]:
    """An axis' name and its values, which stand above the lines."""
    across = place(x)
    title = element("text", name, x=across, y=place(_TOP / 2), text_anchor="middle", class_="name")
    return [
        title,
        *(element("text", text, x=across, y=place(y), dx="5", dy="4", class_="value") for text, y in values),
    ]


def _drawn(line: Line, places: list[tuple[float, float]]) -> Markup:
    pieces = [
        element("line", x1=place(x1), y1=place(y1), x2=place(x2), y2=place(y2))
        for (x1, y1), (x2, y2) in pairwise(places)
    ]
    return element("g", element("title", line.label), joined(pieces), class_=line.kind or None)
