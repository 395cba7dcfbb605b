# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How far many cards lie from their middle: as many as there are, in a drawing of one size."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from gpuprof.comparison.compared import percent
from gpuprof.report.svg.drawing import element, number, place

#: Columns of the distribution, an odd number so that one of them is the middle.
_COLUMNS = 81
#: Heights of the drawing and of the marks below the columns, in pixels.
_HEIGHT, _MARKS = 34, 9
#: A column with one card among a thousand is still to be seen.
_LEAST_SHARE = 0.06
#: Where an axis may end, in percent.
_ENDS = (1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 20.0, 50.0, 100.0)
#: Share of all distances that an axis holds; what lies beyond is drawn at its end.
_WITHIN = 0.995


def end_of_axis(changes: Sequence[float], marked: Sequence[float]) -> float:
    """Where an axis of changes, 0.02 for 2 % slower, ends to both sides, in percent: `marked` lie on it."""
    ordered = sorted(map(abs, changes))
    widest = ordered[int(_WITHIN * (len(ordered) - 1))] if ordered else 0.0
    typical = sorted(map(abs, marked))[len(marked) // 2] if marked else 0.0
    wanted = 105 * max(widest, typical)
    return next((end for end in _ENDS if wanted <= end), _ENDS[-1])


def card_strip(changes: Mapping[str, float], marked: Mapping[str, bool], end: float) -> Markup:
    """The distribution of cards' changes as columns, and a mark for each card that is told from the others.

    A mark tells whether more than one process confirms it; the axis ends at `end` percent to both sides.
    """
    counts = [0] * _COLUMNS
    for change in changes.values():
        counts[round(_share(change, end) * (_COLUMNS - 1))] += 1
    most = max(counts)
    strokes = "".join(
        f"M{column} 1V{number(1 - max(_LEAST_SHARE, count / most))}h1V1z"
        for column, count in enumerate(counts)
        if count
    )
    columns = element(
        "svg",
        element("path", d=strokes),
        viewBox=f"0 0 {_COLUMNS} 1",
        preserveAspectRatio="none",
        width="100%",
        height=_HEIGHT - _MARKS,
        class_="columns",
    )
    dots = [
        element(
            "circle",
            element("title", f"{card}: {percent(changes[card])}"),
            cx=place((0.5 + _share(changes[card], end) * (_COLUMNS - 1)) / _COLUMNS),
            cy=_HEIGHT - _MARKS / 2,
            r="3",
            class_="outlier" if confirmed else "unsure",
        )
        for card, confirmed in marked.items()
        if card in changes
    ]
    middle = element("line", x1="50%", x2="50%", y1="0", y2=_HEIGHT, class_="middle")
    low, high = min(changes.values()), max(changes.values())
    label = f"{len(changes):,} cards, {percent(low)} to {percent(high)}, {len(dots)} marked"
    return element(
        "svg",
        middle,
        columns,
        *dots,
        class_="strip",
        height=_HEIGHT,
        width="100%",
        role="img",
        aria_label=label,
    )


def _share(change: float, end: float) -> float:
    return min(1.0, max(0.0, 0.5 + 50 * change / end))
