# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Lines and points between two axes: rates over size, and rooflines with the ladder's steps as arrows."""

from collections.abc import Iterator
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

_LABEL_PX, _LINE_PX = 11.0, 13.0
#: Where a name may stand beside its mark: pixels across and down, and which end of it is there.
_SIDES = ((9.0, 4.0, "start"), (-9.0, 4.0, "end"), (0.0, -10.0, "middle"), (0.0, 18.0, "middle"))
_MARK_PX = 7.0

_Box = tuple[float, float, float, float]


def curves(chart: dict[str, Any], choice: int) -> Markup:
    """The series that are shown from the start.

    Args:
        chart: As `charts.scaling_chart` and `charts.roofline_chart` make it.
        choice: Which of its drawings.
    """
    held = chart["choices"][choice]
    shown = [item for item in held["series"] if item["shown"]]
    roofs = held.get("roofs", [])
    plane = Plane(_scale(held["x"]), _scale(held["y"]), chart["height"])
    lined = [item for item in shown if "line" in item]
    paths = [_path(plane, roof, roof["line"]) for roof in roofs]
    content = [stretched(*paths, *(_path(plane, item, f"{_class(item)} {item['line']}") for item in lined))]
    head = f"{chart['id']}-{choice}-arrow"
    steps = [_step(plane, step, head) for step in held.get("steps", [])]
    content += [_arrow_head(head), *steps] if steps else []
    content += [whisker for item in shown for whisker in _whiskers(plane, item)]
    content += [one for item in shown for one in _marks(plane, item)]
    # Series of one mark each have their names beside them.
    content += _names(plane, [item for item in shown if item.get("last")])
    words = "; ".join(f"{item['name']} {item['text'][-1]}" for item in shown)
    frame = Frame(
        title=f"{chart['title']}: {held['label']}",
        description=f"{len(shown)} of {len(held['series'])} kernels, each at its largest size: {words}.",
        x_title=held["x"]["title"],
        y_title=held["y"]["title"],
        x_ticks=tuple((value, label) for value, label in held["x"].get("ticks", [])),
    )
    legend = [*map(_roof_in_words, roofs), *map(_in_words, shown)]
    return joined([key(legend), drawn(plane, content, frame)])


def _scale(axis: dict[str, Any]) -> Scale:
    return Scale(axis["low"], axis["high"], axis["logarithmic"])


def _class(item: dict[str, Any]) -> str:
    return f"{series_class(item['look'], item['reference'])}{' open' if item.get('open') else ''}"


def _path(plane: Plane, item: dict[str, Any], class_: str) -> Markup:
    return element("path", d=plane.path(list(zip(item["x"], item["y"], strict=True))), class_=class_)


def _whiskers(plane: Plane, item: dict[str, Any]) -> Iterator[Markup]:
    if "up" not in item:
        return
    for x, y, up, down in zip(item["x"], item["y"], item["up"], item["down"], strict=True):
        (across, top), (_, foot) = plane.at(x, y + up), plane.at(x, y - down)
        if top != foot:
            yield element("line", x1=across, x2=across, y1=top, y2=foot, class_=f"whisker {_class(item)}")


def _marks(plane: Plane, item: dict[str, Any]) -> Iterator[Markup]:
    outline = shape(item["look"], item["reference"])
    points = list(zip(item["x"], item["y"], item["text"], strict=True))
    for x, y, text in points[-1:] if item.get("last") else points:
        yield mark(plane.at(x, y), outline, _class(item), f"{item['name']}, {text}")


def _step(plane: Plane, step: list[float], head: str) -> Markup:
    (x1, y1), (x2, y2) = plane.at(*step[:2]), plane.at(*step[2:])
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_="step", marker_end=f"url(#{head})")


def _arrow_head(name: str) -> Markup:
    head = element("path", d="M0 0L7 3.5L0 7Z")
    attributes = {"refX": "13", "refY": "3.5", "markerWidth": "7", "markerHeight": "7"}
    units = {"markerUnits": "userSpaceOnUse", "orient": "auto"}
    return element("defs", element("marker", head, id=name, **attributes, **units, class_="head"))


def _roof_in_words(roof: dict[str, Any]) -> Markup:
    line = element("line", x1="0", x2="26", y1="7", y2="7", class_=roof["line"])
    sign = element("svg", line, class_="swatch", width="26", height="14", aria_hidden="true")
    return element("span", sign, roof["name"])


def _in_words(item: dict[str, Any]) -> Markup:
    class_ = f"{_class(item)} {item.get('line', '')}".strip()
    sign = swatch(shape(item["look"], item["reference"]), class_, lined="line" in item)
    return element("a", sign, item["name"], href=f"#{item['anchor']}")


def _names(plane: Plane, shown: list[dict[str, Any]]) -> list[Markup]:
    """Names beside the marks, of the highest first, where they touch nothing at any width."""
    ranked = sorted(shown, key=lambda item: -item["y"][-1])
    narrow = dict(_places(plane, ranked, NARROW_PX))
    found = []
    for number, side in _places(plane, ranked, WIDE_PX).items():
        dx, dy, anchor = side
        x, y = plane.at(ranked[number]["x"][-1], ranked[number]["y"][-1])
        class_ = "name" if narrow.get(number) == side else "name wide-only"
        name = ranked[number]["name"]
        found.append(element("text", name, x=x, y=y, dx=dx, dy=dy, text_anchor=anchor, class_=class_))
    return found


def _places(plane: Plane, ranked: list[dict[str, Any]], width: float) -> dict[int, tuple[float, float, str]]:
    """On which side of its mark each name is free, in a plane of so many pixels, and so in any wider one."""
    middles = [
        (plane.x.share(item["x"][-1]) * width, (1 - plane.y.share(item["y"][-1])) * plane.height)
        for item in ranked
    ]
    taken: list[_Box] = [(x - _MARK_PX, y - _MARK_PX, x + _MARK_PX, y + _MARK_PX) for x, y in middles]
    found = {}
    for number, (x, y) in enumerate(middles):
        length = width_of(ranked[number]["name"], _LABEL_PX)
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
