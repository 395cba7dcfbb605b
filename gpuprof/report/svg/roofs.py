# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""One level of the roofline: its roofs, the kernels at the largest size, and the ladder's steps as arrows."""

from typing import Any

from markupsafe import Markup

from gpuprof.report.svg.elements import element, joined
from gpuprof.report.svg.plane import (
    NARROW_PX,
    WIDE_PX,
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
from gpuprof.report.svg.scales import Scale, width_of

_HEIGHT = 420.0
_LABEL_PX, _LINE_PX = 11.0, 13.0
#: Where a name may stand beside its mark: pixels across and down, and which end of it is there.
_SIDES = ((9.0, 4.0, "start"), (-9.0, 4.0, "end"), (0.0, -10.0, "middle"), (0.0, 18.0, "middle"))
_MARK_PX = 7.0

_Box = tuple[float, float, float, float]


def roofs(chart: dict[str, Any], number_of_level: int) -> Markup:
    """One level.

    Args:
        chart: As `charts.roofline_chart` makes it.
        number_of_level: Which of its levels.
    """
    level, peak = chart["levels"][number_of_level], chart["peak"]
    kernels = list(dict.fromkeys(point["kernel"] for point in level["points"]))
    shown = [point for point in level["points"] if point["last"]]
    plane = _plane(level, shown, peak["value"])
    arrow = f"{chart['id']}-{number_of_level}-arrow"
    content = [_arrow_head(arrow), stretched(*(_roof(plane, roof, peak["value"]) for roof in level["roofs"]))]
    content += [
        _step(plane, level["points"][start], level["points"][end], arrow)
        for start, end in level["steps"]
        if level["points"][start]["last"]
    ]
    names = _names(plane, shown)
    for point in shown:
        index = kernels.index(point["kernel"])
        class_ = f"{series_class(index, point['reference'])}{' open' if point['bound'] else ''}"
        title = f"{point['kernel']} at {point['size']}: {point['text']}, {point['intensity']}"
        content.append(
            mark(plane.at(point["x"], point["y"]), shape(index, point["reference"]), class_, title)
        )
    content += names
    words = "; ".join(f"{point['kernel']} {point['text']} at {point['intensity']}" for point in shown)
    frame = Frame(
        title=f"Roofline, {chart['title']}: {level['label']}",
        description=f"Kernels at {shown[-1]['size']}: {words}.",
        x_title=f"arithmetic intensity, FLOP per byte: {level['label']} (logarithmic)",
        y_title="GFLOP/s at most, by bounds (logarithmic)"
        if any(point["bound"] for point in shown)
        else "GFLOP/s, cold median (logarithmic)",
    )
    return joined(
        [key(_lines_in_words(level, peak)), drawn(plane, content, frame), key(_legend(kernels, shown))]
    )


def _plane(level: dict[str, Any], shown: list[dict[str, Any]], peak: float) -> Plane:
    best = max(roof["gbps"] for roof in level["roofs"])
    ridges = [peak / roof["gbps"] for roof in level["roofs"]]
    xs, ys = [point["x"] for point in shown], [point["y"] for point in shown]
    left = min(*xs, *ridges) / 4
    return Plane(
        Scale(left, max(*xs, *ridges) * 3, logarithmic=True),
        Scale(min(*ys, best * left) / 1.6, peak * 1.9, logarithmic=True),
        _HEIGHT,
    )


def _roof(plane: Plane, roof: dict[str, Any], peak: float) -> Markup:
    """The slope of one bandwidth, and the level roof that it meets where it is theoretical."""
    points = [(plane.x.low, plane.x.low * roof["gbps"]), (peak / roof["gbps"], peak)]
    if not roof["measured"]:
        points.append((plane.x.high, peak))
    return element("path", d=plane.path(points), class_="roof measured" if roof["measured"] else "roof")


def _lines_in_words(level: dict[str, Any], peak: dict[str, Any]) -> list[Markup]:
    def line(class_: str) -> Markup:
        drawn_line = element("line", x1="0", x2="26", y1="7", y2="7", class_=class_)
        return element("svg", drawn_line, class_="swatch", width="26", height="14", aria_hidden="true")

    labels = [roof["label"] for roof in level["roofs"] if not roof["measured"]] + [peak["label"]]
    items = [element("span", line("roof"), ", ".join(labels))]
    items += [
        element("span", line("roof measured"), roof["label"]) for roof in level["roofs"] if roof["measured"]
    ]
    return items


def _arrow_head(name: str) -> Markup:
    head = element("path", d="M0 0L7 3.5L0 7Z")
    attributes = {"refX": "13", "refY": "3.5", "markerWidth": "7", "markerHeight": "7"}
    units = {"markerUnits": "userSpaceOnUse", "orient": "auto"}
    return element("defs", element("marker", head, id=name, **attributes, **units, class_="head"))


def _step(plane: Plane, start: dict[str, Any], end: dict[str, Any], head: str) -> Markup:
    """An arrow; between points that are one it has no direction, and is none."""
    (x1, y1), (x2, y2) = plane.at(start["x"], start["y"]), plane.at(end["x"], end["y"])
    if (x1, y1) == (x2, y2):
        return Markup("")
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_="step", marker_end=f"url(#{head})")


def _legend(kernels: list[str], shown: list[dict[str, Any]]) -> list[Markup]:
    found = []
    for point in shown:
        index = kernels.index(point["kernel"])
        class_ = f"{series_class(index, point['reference'])}{' open' if point['bound'] else ''}"
        sign = swatch(shape(index, point["reference"]), class_)
        found.append(element("a", sign, point["kernel"], href=f"#{point['anchor']}"))
    return found


def _names(plane: Plane, shown: list[dict[str, Any]]) -> list[Markup]:
    """Names beside the marks, of the fastest kernels first, where they touch nothing at any width."""
    ranked = sorted(shown, key=lambda point: -point["y"])
    narrow = dict(_places(plane, ranked, NARROW_PX))
    found = []
    for number, side in _places(plane, ranked, WIDE_PX).items():
        dx, dy, anchor = side
        x, y = plane.at(ranked[number]["x"], ranked[number]["y"])
        class_ = "name" if narrow.get(number) == side else "name wide-only"
        found.append(
            element(
                "text", ranked[number]["kernel"], x=x, y=y, dx=dx, dy=dy, text_anchor=anchor, class_=class_
            )
        )
    return found


def _places(plane: Plane, ranked: list[dict[str, Any]], width: float) -> dict[int, tuple[float, float, str]]:
    """On which side of its mark each name is free, in a plane of so many pixels, and so in any wider one."""
    middles = [
        (plane.x.share(point["x"]) * width, (1 - plane.y.share(point["y"])) * plane.height)
        for point in ranked
    ]
    taken: list[_Box] = [(x - _MARK_PX, y - _MARK_PX, x + _MARK_PX, y + _MARK_PX) for x, y in middles]
    found = {}
    for number, (x, y) in enumerate(middles):
        length = width_of(ranked[number]["kernel"], _LABEL_PX)
        for dx, dy, anchor in _SIDES:
            left = x + dx - {"start": 0.0, "middle": length / 2, "end": length}[anchor]
            box = (left, y + dy - _LINE_PX + 3, left + length, y + dy + 3)
            others = (other for index, other in enumerate(taken) if index != number)
            if box[0] >= 0 and box[2] <= width and not any(_touch(box, other) for other in others):
                taken.append(box)
                found[number] = (dx, dy, anchor)
                break
    return found


def _touch(first: _Box, second: _Box) -> bool:
    return first[0] < second[2] and second[0] < first[2] and first[1] < second[3] and second[1] < first[3]
