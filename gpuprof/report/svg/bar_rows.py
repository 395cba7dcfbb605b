# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The ladder as a list of bars: each a link to its kernel, with its figures as text beside it."""

from itertools import accumulate
from typing import Any

from markupsafe import Markup

from gpuprof.report.svg.drawing import Scale, element, number, place, tick_text, width_of

_TICKS = 6
#: Size of the names' and labels' font in pixels, as the style sheet sets it.
_LETTERS_PX = 12.0
_LONGEST_NAME_PX = 230.0
_AROUND_LABEL = 14.0
#: The narrowest tracks with a label in full, and in short: the style sheet's breaks less the names.
_WIDE_TRACK, _TRACK = 650.0, 330.0
_LONGEST_REASON = 90


def bar_rows(chart: dict[str, Any], choice: int) -> Markup:
    """One figure of every rung, of a chart as `charts.ladder_chart` makes it."""
    metric = chart["choices"][choice]
    axis = metric["x"]
    scale = Scale(axis["low"], axis["high"], axis["logarithmic"])
    rooms = {
        "--names": min(_LONGEST_NAME_PX, max(width_of(row["name"], _LETTERS_PX) for row in chart["rows"])),
        "--room": _room(metric, scale, "text", _WIDE_TRACK),
        "--short-room": _room(metric, scale, "short", _TRACK),
    }
    rows = [
        _row(row, bar, scale, metric["without"])
        for row, bar in zip(chart["rows"], metric["bars"], strict=True)
    ]
    shown, beyond = _limits(metric, scale)
    return element(
        "div",
        _key(shown, beyond, metric["parts"]),
        element(
            "div",
            _grid(shown, scale),
            element("ol", *rows, role="list", aria_label=f"{chart['title']}: {axis['title']}"),
            class_="bar-rows-body",
        ),
        _axis(scale),
        element("p", axis["title"], class_="axis-title"),
        class_="bar-rows",
        style=";".join(f"{name}:{number(px)}px" for name, px in rooms.items()),
    )


def _room(metric: dict[str, Any], scale: Scale, kind: str, narrowest: float) -> float:
    """Pixels beyond the axis that let every label end within a track of at least so many pixels.

    A bar that ends at the share e of the axis leaves its label `track * (1 - e) + room * e`.
    """
    needs = [0.0]
    for bar in filter(None, metric["bars"]):
        end = min(1.0, scale.share(bar["end"]))
        label = width_of(_beyond(bar, scale) + bar[kind], _LETTERS_PX) + _AROUND_LABEL
        if end > 0:
            needs.append((label - narrowest * (1 - end)) / end)
    return max(needs)


def _limits(metric: dict[str, Any], scale: Scale) -> tuple[list[tuple[int, dict[str, Any]]], list[str]]:
    """Lines on the axis, each with the number of its pattern, and labels of those beyond it."""
    numbered = list(enumerate(metric["lines"]))
    shown = [(index, line) for index, line in numbered if line["value"] <= scale.high * (1 + 1e-9)]
    return shown, [line["label"] for line in metric["lines"] if line["value"] > scale.high * (1 + 1e-9)]


def _key(shown: list[tuple[int, dict[str, Any]]], beyond: list[str], parts: list[str]) -> Markup:
    if not shown and not beyond and not parts:
        return Markup("")
    items = [
        element(
            "span",
            element(
                "svg", element("rect", width="100%", height="100%", class_=f"of-{look}"), class_="swatch"
            ),
            label,
        )
        for look, label in enumerate(parts, 1)
    ]
    items += [
        element(
            "span", element("svg", _upright(index, "50%"), class_="swatch", aria_hidden="true"), line["label"]
        )
        for index, line in shown
    ]
    items += [element("span", f"→ beyond this axis: {label}") for label in beyond]
    return element("p", *items, class_="key")


def _upright(index: int, x: str) -> Markup:
    return element("line", x1=x, x2=x, y1="0", y2="100%", class_=f"limit limit-{index % 2}")


def _grid(shown: list[tuple[int, dict[str, Any]]], scale: Scale) -> Markup:
    ticks = [
        element("line", x1=place(at), x2=place(at), y1="0", y2="100%")
        for at in map(scale.share, scale.ticks(_TICKS))
    ]
    limits = [_upright(index, place(scale.share(line["value"]))) for index, line in shown]
    return element("svg", *ticks, *limits, class_="grid", aria_hidden="true")


def _axis(scale: Scale) -> Markup:
    labels = []
    for value in scale.ticks(_TICKS):
        at = scale.share(value)
        anchor = "start" if at < 0.02 else "end" if at > 0.98 else "middle"
        labels.append(element("text", tick_text(value), x=place(at), y="13", text_anchor=anchor))
    return element("svg", *labels, class_="ticks", aria_hidden="true")


def _row(row: dict[str, Any], bar: dict[str, Any] | None, scale: Scale, without: str) -> Markup:
    kinds = [name for name in ("fastest", "reference", "ceiling", "folded") if row[name]]
    if bar is None:
        kinds.append("without")
        kinds += ["bad"] if not row["usable"] and row["is_fault"] else []
    link = element(
        "a",
        element("b", row["name"]),
        element("span", _bar(bar, scale), _label(bar, scale), class_="track")
        if bar
        else _without(row, without),
        href=f"#{row['anchor']}",
    )
    return element("li", link, class_=" ".join(kinds) or None, style=f"order:{row['rung']}")


def _bar(bar: dict[str, Any], scale: Scale) -> Markup:
    """A drawing that is as long as the last thing in it, or as the axis, so that the label follows it."""
    end = min(1.0, max(scale.share(bar["end"]), 1e-4))

    def along(value: float) -> str:
        return place(min(1.0, scale.share(value) / end))

    parts = [element("rect", width=along(bar["value"]), height="100%")]
    if bar["parts"]:
        ends = [0.0, *accumulate(bar["parts"])]
        parts = [
            element("rect", x=along(start), width=along(part), height="100%", class_=f"of-{look}")
            for look, (start, part) in enumerate(zip(ends, bar["parts"], strict=False), 1)
            if part > 0
        ]
    if bar["high"] > bar["low"]:
        low, high = along(bar["low"]), along(bar["high"])
        parts.append(element("line", x1=low, x2=high, y1="50%", y2="50%", class_="whisker"))
        parts += [element("line", x1=x, x2=x, y1="25%", y2="75%", class_="whisker") for x in (low, high)]
    if bar["mark"]:
        x = along(bar["mark"])
        parts.append(element("line", x1=x, x2=x, y1="-3", y2="17", class_="mark"))
    return element("svg", *parts, style=f"--end:{end:.4f}", aria_hidden="true")


def _label(bar: dict[str, Any], scale: Scale) -> Markup:
    """What stands in narrow places too, and the rest."""
    rest = bar["text"].removeprefix(bar["short"])
    short = _beyond(bar, scale) + bar["short"]
    return element("span", short, element("i", rest)) if rest else element("span", short)


def _beyond(bar: dict[str, Any], scale: Scale) -> str:
    """What tells that a bar is longer than its axis."""
    return "→ " if bar["end"] > scale.high * (1 + 1e-9) else ""


def _without(row: dict[str, Any], why: str) -> Markup:
    if row["usable"]:
        return element("span", element("span", why), class_="track")
    reason = row["reason"] if len(row["reason"]) <= _LONGEST_REASON else f"{row['reason'][:_LONGEST_REASON]}…"
    return element(
        "span", element("span", f"{row['status']}{': ' if reason else ''}{reason}"), class_="track"
    )
