# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Lines and points between two axes: rates over size, and rooflines."""

from collections.abc import Iterator, Sequence
from typing import Any

from markupsafe import Markup
from msgspec import Struct

from gpuprof.report.svg.drawing import Scale, element, number, place, tick_text, width_of

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
#: A line through a sign of the legend.
_ACROSS = {"x1": "0", "x2": "26", "y1": "7", "y2": "7"}
#: Pixels that a plane is sure to have between its axes, on a phone and on a screen.
NARROW_PX, WIDE_PX = 220.0, 560.0
_TICK_PX = 12.0
#: What a plane has beside it at least, and what labels have between them.
_MARGIN_PX, _BETWEEN_PX = 14.0, 8.0


class _Plane(Struct, frozen=True):
    """The place between two axes, so many pixels high."""

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


def curves(chart: dict[str, Any], choice: int) -> Markup:
    """The series that are shown from the start, of a chart of rates over size or of a roofline."""
    held = chart["choices"][choice]
    shown = [item for item in held["series"] if item["shown"]]
    roofs = held.get("roofs", [])
    plane = _Plane(_scale(held["x"]), _scale(held["y"]), chart["height"])
    lined = [item for item in shown if "line" in item]
    paths = [_path(plane, roof, roof["line"]) for roof in roofs]
    content = [_stretched(*paths, *(_path(plane, item, f"{_class(item)} {item['line']}") for item in lined))]
    content += [whisker for item in shown for whisker in _whiskers(plane, item)]
    content += [one for item in shown for one in _marks(plane, item)]
    legend = element("p", *map(_roof_in_words, roofs), *map(_in_words, shown), class_="key")
    room = max((width_of(tick_text(value), _TICK_PX) for value in _heights(plane)), default=0.0)
    words = "; ".join(f"{item['name']} {item['text'][-1]}" for item in shown)
    described = f"{len(shown)} of {len(held['series'])} kernels, each at its largest size: {words}."
    drawing = element(
        "svg",
        element("title", f"{chart['title']}: {held['label']}"),
        element("desc", described),
        *_vertical(plane, held["x"].get("ticks", [])),
        *_horizontal(plane),
        *content,
        role="img",
        height=number(plane.height),
        class_="plane",
    )
    framed = element(
        "div",
        element("p", held["y"]["title"], class_="axis-title"),
        element("div", drawing, class_="plane-box", style=f"--left:{number(room + 10)}px"),
        element("p", held["x"]["title"], class_="axis-title across"),
        class_="plane-chart",
    )
    return legend + framed


def _scale(axis: dict[str, Any]) -> Scale:
    return Scale(axis["low"], axis["high"], axis["logarithmic"])


def _class(item: dict[str, Any]) -> str:
    colour = "reference" if item["reference"] else item["look"] % _COLOURS + 1
    return f"of-{colour}{' open' if item.get('open') else ''}"


def _path(plane: _Plane, item: dict[str, Any], class_: str) -> Markup:
    return element("path", d=plane.path(list(zip(item["x"], item["y"], strict=True))), class_=class_)


def _whiskers(plane: _Plane, item: dict[str, Any]) -> Iterator[Markup]:
    if "up" not in item:
        return
    for x, y, up, down in zip(item["x"], item["y"], item["up"], item["down"], strict=True):
        (across, top), (_, foot) = plane.at(x, y + up), plane.at(x, y - down)
        if top != foot:
            yield element("line", x1=across, x2=across, y1=top, y2=foot, class_=f"whisker {_class(item)}")


def _marks(plane: _Plane, item: dict[str, Any]) -> Iterator[Markup]:
    points = list(zip(item["x"], item["y"], item["text"], strict=True))
    for point_x, point_y, text in points[-1:] if item.get("last") else points:
        x, y = plane.at(point_x, point_y)
        mark = element("path", element("title", f"{item['name']}, {text}"), d=_shape(item))
        yield element("svg", mark, x=x, y=y, class_=f"mark {_class(item)}")


def _roof_in_words(roof: dict[str, Any]) -> Markup:
    return element("span", _swatch("", element("line", **_ACROSS, class_=roof["line"])), roof["name"])


def _in_words(item: dict[str, Any]) -> Markup:
    line = [element("line", **_ACROSS)] if "line" in item else []
    mark = element("path", d=_shape(item), transform="translate(13 7)")
    sign = _swatch(f"mark {_class(item)} {item.get('line', '')}".strip(), *line, mark)
    return element("a", sign, item["name"], href=f"#{item['anchor']}")


def _shape(item: dict[str, Any]) -> str:
    """The outline of a series' marks."""
    return REFERENCE_SHAPE if item["reference"] else SHAPES[item["look"] % len(SHAPES)]


def _swatch(class_: str, *content: Markup) -> Markup:
    """A sign for the legend."""
    return element(
        "svg", *content, class_=f"swatch {class_}".strip(), width="26", height="14", aria_hidden="true"
    )


def _stretched(*paths: Markup) -> Markup:
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


def _vertical(plane: _Plane, named: Sequence[tuple[float, str]]) -> list[Markup]:
    """Grid lines across, where there is room for their values."""
    ticks = named or tuple((value, tick_text(value)) for value in plane.x.ticks(8))
    placed = [(plane.x.share(value), label) for value, label in ticks]
    wide = _fitting(placed, range(len(placed)), WIDE_PX)
    narrow = _fitting(placed, wide, NARROW_PX)
    found = []
    for index in sorted(wide):
        share, label = placed[index]
        x = place(share)
        found.append(element("line", x1=x, x2=x, y1="0", y2="100%", class_="rule"))
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


def _heights(plane: _Plane) -> tuple[float, ...]:
    return plane.y.ticks(max(2, int(plane.height / 45)))


def _horizontal(plane: _Plane) -> list[Markup]:
    found = []
    for value in _heights(plane):
        y = place(1 - plane.y.share(value))
        found.append(element("line", x1="0", x2="100%", y1=y, y2=y, class_="rule"))
        found.append(element("text", tick_text(value), x="-7", y=y, dy="4", text_anchor="end"))
    return found
