# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Two axes with lines and marks: what the charts of rates over size and of rooflines share."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from gpuprof.report.svg.elements import element, number, place
from gpuprof.report.svg.scales import Scale, tick_text, width_of

#: Marks within 5 pixels of their place; seven shapes and eight colours tell 56 series apart.
SHAPES = (
    "M-4.5 0A4.5 4.5 0 1 0 4.5 0A4.5 4.5 0 1 0 -4.5 0Z",
    "M0-5.5L5.5 0L0 5.5L-5.5 0Z",
    "M-4-4H4V4H-4Z",
    "M0-5.2L5 4H-5Z",
    "M0 5.2L5-4H-5Z",
    "M-5-1.6H-1.6V-5H1.6V-1.6H5V1.6H1.6V5H-1.6V1.6H-5Z",
    "M-4.5-4.5H4.5L-4.5 4.5H4.5Z",
)
REFERENCE_SHAPE = (
    "M-4.6-3.2L-3.2-4.6L0-1.4L3.2-4.6L4.6-3.2L1.4 0L4.6 3.2L3.2 4.6L0 1.4L-3.2 4.6L-4.6 3.2L-1.4 0Z"
)
_COLOURS = 8
#: Pixels that a plane is sure to have between its axes, on a phone and on a screen.
NARROW_PX, WIDE_PX = 220.0, 560.0
_TICK_PX = 11.5
#: What a plane has beside it at least, and what labels have between them.
_MARGIN_PX, _BETWEEN_PX = 14.0, 8.0


@dataclass(frozen=True, slots=True)
class Plane:
    """The place between two axes.

    Args:
        x: The horizontal axis.
        y: The vertical axis.
        height: In pixels.
    """

    x: Scale
    y: Scale
    height: float

    def at(self, x: float, y: float) -> tuple[str, str]:
        """Where a point stands, from the upper left."""
        return place(self.x.share(x)), place(1 - self.y.share(y))

    def path(self, points: Sequence[tuple[float, float]]) -> str:
        """A line through points, on a field of 1000 by 1000 that is stretched over the plane."""
        steps = (
            f"{number(1000 * self.x.share(x))} {number(1000 * (1 - self.y.share(y)))}" for x, y in points
        )
        return "M" + "L".join(steps)


@dataclass(frozen=True, slots=True)
class Frame:
    """The words around a plane.

    Args:
        title: What it shows, for who cannot see it.
        description: Its main figures in words.
        x_title: Of the horizontal axis.
        y_title: Of the vertical axis.
        x_ticks: Values of the horizontal axis with their texts; round values where there are none.
    """

    title: str
    description: str
    x_title: str
    y_title: str
    x_ticks: tuple[tuple[float, str], ...] = ()


def series_class(index: int, is_reference: bool) -> str:
    """The class that colours a series."""
    return "of-reference" if is_reference else f"of-{index % _COLOURS + 1}"


def shape(index: int, is_reference: bool) -> str:
    """The outline of a series' marks."""
    return REFERENCE_SHAPE if is_reference else SHAPES[index % len(SHAPES)]


def mark(at: tuple[str, str], outline: str, class_: str, title: str) -> Markup:
    """A mark that keeps its size, with what it stands for."""
    x, y = at
    return element(
        "svg", element("path", element("title", title), d=outline), x=x, y=y, class_=f"mark {class_}"
    )


def swatch(outline: str, class_: str, *, lined: bool = False) -> Markup:
    """A series' mark for the legend."""
    line = [element("line", x1="0", x2="26", y1="7", y2="7")] if lined else []
    middle = "translate(13 7)"
    return element(
        "svg",
        *line,
        element("path", d=outline, transform=middle),
        class_=f"swatch mark {class_}",
        width="26",
        height="14",
        aria_hidden="true",
    )


def stretched(*paths: Markup) -> Markup:
    """Lines given by `Plane.path`: their shape follows the plane, their width does not."""
    return element(
        "svg",
        *paths,
        viewBox="0 0 1000 1000",
        preserveAspectRatio="none",
        width="100%",
        height="100%",
        class_="lines",
    )


def drawn(plane: Plane, content: Sequence[Markup], frame: Frame) -> Markup:
    """The whole drawing: axes, what stands between them, titles."""
    return element(
        "div",
        element("p", frame.y_title, class_="axis-title"),
        element(
            "div",
            element(
                "svg",
                element("title", frame.title),
                element("desc", frame.description),
                *_vertical(plane, frame.x_ticks),
                *_horizontal(plane),
                *content,
                role="img",
                height=number(plane.height),
                class_="plane",
            ),
            class_="plane-box",
            style=f"--left:{number(_left(plane))}px",
        ),
        element("p", frame.x_title, class_="axis-title across"),
        class_="plane-chart",
    )


def _vertical(plane: Plane, named: tuple[tuple[float, str], ...]) -> list[Markup]:
    """Grid lines across, each with its value where there is room for it."""
    ticks = named or tuple((value, tick_text(value)) for value in plane.x.ticks(8))
    placed = [(plane.x.share(value), label) for value, label in ticks]
    wide = _fitting(placed, range(len(placed)), WIDE_PX)
    narrow = _fitting(placed, wide, NARROW_PX)
    found = []
    for index, (share, label) in enumerate(placed):
        x = place(share)
        found.append(element("line", x1=x, x2=x, y1="0", y2="100%", class_="rule"))
        if index in wide:
            found.append(
                element(
                    "text",
                    label,
                    x=x,
                    y=number(plane.height + 17),
                    text_anchor=_anchor(share, label),
                    class_=None if index in narrow else "wide-only",
                )
            )
    return found


def _anchor(share: float, label: str) -> str:
    """Which part of a label stands below its line, so that none leaves the page at either end."""
    half = width_of(label, _TICK_PX) / 2
    if half > (1 - share) * NARROW_PX + _MARGIN_PX:
        return "end"
    return "start" if half > share * NARROW_PX + _MARGIN_PX else "middle"


def _fitting(placed: list[tuple[float, str]], among: Sequence[int], width: float) -> list[int]:
    """Which of some labels stand beside each other without touching; the last is the most telling one."""
    found, free = [], float("inf")
    for index in sorted(among, reverse=True):
        share, label = placed[index]
        length = width_of(label, _TICK_PX)
        before = {"start": 0.0, "middle": length / 2, "end": length}[_anchor(share, label)]
        left = share * width - before
        if left + length <= free:
            found.append(index)
            free = left - _BETWEEN_PX
    return found


def _heights(plane: Plane) -> tuple[float, ...]:
    return plane.y.ticks(max(2, int(plane.height / 45)))


def _left(plane: Plane) -> float:
    """Room for the texts of the vertical axis."""
    return max((width_of(tick_text(value), _TICK_PX) for value in _heights(plane)), default=0.0) + 10


def _horizontal(plane: Plane) -> list[Markup]:
    found = []
    for value in _heights(plane):
        y = place(1 - plane.y.share(value))
        found.append(element("line", x1="0", x2="100%", y1=y, y2=y, class_="rule"))
        found.append(element("text", tick_text(value), x="-7", y=y, dy="4", text_anchor="end"))
    return found


def key(items: Sequence[Markup]) -> Markup:
    """A legend that wraps like text."""
    return element("p", *items, class_="key")
