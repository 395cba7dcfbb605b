# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A sweep as a table that is its own heat map: each figure on the colour that it stands for."""

from math import log
from typing import Any

from markupsafe import Markup

from gpuprof.report.svg.drawing import element, place

#: Colours from the worst to the best; the style sheet gives each an ink that can be read on it.
SHADES = 9
#: So many columns fit on any screen.
_NEVER_TOO_WIDE = 3


def heat_table(chart: dict[str, Any]) -> Markup:
    """A table over two parameters, as `charts.parameter_chart` describes it."""
    rows = [
        element("tr", element("th", str(y), scope="row"), *_cells(chart, row))
        for row, y in enumerate(chart["ys"])
    ]
    across = element("th", chart["x_title"], scope="colgroup", colspan=len(chart["xs"]), class_="across")
    columns = [element("th", str(x), scope="col") for x in chart["xs"]]
    table = element(
        "table",
        element("caption", chart["caption"]),
        element(
            "thead",
            element("tr", element("th", chart["y_title"], scope="col", rowspan="2"), across),
            element("tr", *columns),
        ),
        element("tbody", *rows),
        class_="heat-table",
    )
    if len(chart["xs"]) <= _NEVER_TOO_WIDE:
        return table
    # What may be wider than a phone is scrolled by keyboard too.
    return element("div", table, class_="scroll", tabindex="0", role="region", aria_label=chart["caption"])


def bar_table(chart: dict[str, Any]) -> Markup:
    """The same over one parameter: a bar for each of its values."""
    rows = []
    for column, x in enumerate(chart["xs"]):
        value = chart["z"][0][column]
        share = value / chart["high"] if value is not None and chart["high"] else 0.0
        bar = element("svg", element("rect", width=place(share), height="100%"), aria_hidden="true")
        best = "best" if chart["best"][0][column] else None
        rows.append(
            element(
                "tr",
                element("th", str(x), scope="row"),
                element("td", bar, class_="bar"),
                element("td", _written(chart, 0, column), class_="num" if value is not None else "num none"),
                class_=best,
            )
        )
    head = [
        element("th", chart["x_title"], scope="col"),
        element("th", chart["figure"], scope="col", colspan="2"),
    ]
    return element(
        "table",
        element("caption", chart["caption"]),
        element("thead", element("tr", *head)),
        element("tbody", *rows),
        class_="bar-table",
    )


def shade(chart: dict[str, Any], value: float) -> int:
    """Which colour a value has: 0 for the worst, `SHADES - 1` for the best."""
    low, high = chart["low"], chart["high"]
    if high == low:
        return SHADES - 1
    share = log(value / low) / log(high / low) if chart["logarithmic"] else (value - low) / (high - low)
    return min(SHADES - 1, int(SHADES * (1 - share if chart["reversed"] else share)))


def _cells(chart: dict[str, Any], row: int) -> list[Markup]:
    found = []
    for column in range(len(chart["xs"])):
        value = chart["z"][row][column]
        text = _written(chart, row, column)
        kinds = [f"shade-{shade(chart, value)}"] if value is not None else ["none"]
        if chart["best"][row][column]:
            kinds.append("best")
        found.append(element("td", text, class_=" ".join(kinds)))
    return found


def _written(chart: dict[str, Any], row: int, column: int) -> str:
    marks = " ★" if chart["best"][row][column] else ""
    marks += " ◇" if chart["default"][row][column] else ""
    return (chart["text"][row][column] or "–") + marks
