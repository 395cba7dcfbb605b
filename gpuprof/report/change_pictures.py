# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Small inline drawings of a comparison: where a change may lie, and how the rounds of both spread."""

from collections.abc import Sequence

from markupsafe import Markup

from gpuprof.analysis import numbers
from gpuprof.comparison.compared import percent
from gpuprof.comparison.judging import Judgement
from gpuprof.comparison.spread import spreads
from gpuprof.results import Timing

_WIDTH, _HEIGHT = 190, 20
_ROUNDS_WIDTH, _ROUNDS_HEIGHT = 460, 110
#: Steps at which an axis of changes may end, in percent.
_ENDS = (2, 5, 10, 20, 50, 100)
_GAP = 14
#: Share of a table's changes that its axis holds; the others are drawn at its end, with an arrow.
_WITHIN = 0.85


def axis_end(found: Sequence[Judgement]) -> float:
    """Where an axis of changes ends to both sides, in percent, for all of a table.

    The few that changed most do not stretch it, or small changes of the others could not be seen.
    """
    reaches = sorted(100 * max(map(abs, (item.change, item.low, item.high))) for item in found)
    widest = reaches[int(_WITHIN * (len(reaches) - 1))] if reaches else 0.0
    return next((end for end in _ENDS if widest <= end), float(_ENDS[-1]))


def change_picture(found: Judgement, verdict: str, end: float) -> Markup:
    """The estimate as a dot, its interval as a line; the middle is no change.

    Args:
        found: What is drawn.
        verdict: Decides the colour, by a class of that name.
        end: Change at either end of the axis, in percent.
    """

    def x(change: float) -> float:
        return round(_WIDTH / 2 * (1 + max(-1.0, min(1.0, 100 * change / end))), 1)

    y = _HEIGHT / 2
    beyond = "".join(
        f"M{x(side)} {y - 4}l{4 * sign} 4l{-4 * sign} 4"
        for side, sign in ((found.low, -1), (found.high, 1))
        if abs(100 * side) > end
    )
    label = f"{percent(found.change)}, {percent(found.low)} to {percent(found.high)}"
    return Markup(
        '<svg class="change {verdict}" viewBox="-5 0 {wide} {h}" width="{wide}" height="{h}" role="img"'
        ' aria-label="{label}"><path d="M{low} {y}H{high}{beyond}"/>'
        '<circle cx="{dot}" cy="{y}" r="3.5"/></svg>'
    ).format(
        verdict=verdict,
        wide=_WIDTH + 10,
        h=_HEIGHT,
        label=label,
        y=y,
        low=x(found.low),
        high=x(found.high),
        dot=x(found.change),
        beyond=beyond,
    )


def rounds_picture(base: Timing, new: Timing) -> Markup:
    """Both versions side by side on one axis of time: a column a round, p05 to p95, its median marked."""
    sides = [spreads(timing) for timing in (base, new)]
    low = min(column.low for side in sides for column in side)
    high = max(column.high for side in sides for column in side)
    low, high = low - 0.04 * (high - low or high), high + 0.04 * (high - low or high)

    def y(time: float) -> float:
        return (_ROUNDS_HEIGHT - 2) * (high - time) / (high - low) + 1

    width = (_ROUNDS_WIDTH - _GAP) / 2
    parts = []
    for number, (name, timing, columns) in enumerate(zip(("base", "new"), (base, new), sides, strict=True)):
        start = number * (width + _GAP)
        step = width / len(columns)
        half = max(1.0, min(7.0, step * 0.3))
        spans, marks = [], []
        for index, column in enumerate(columns):
            x = start + (index + 0.5) * step
            spans.append(f"M{x:.1f} {y(column.high):.1f}V{y(column.low):.1f}")
            marks.append(f"M{x - half:.1f} {y(column.middle):.1f}h{2 * half:.1f}")
        middle = y(timing.median_us)
        parts.append(
            f'<path class="span {name}" d="{"".join(spans)}"/>'
            f'<path class="mark {name}" d="{"".join(marks)}"/>'
        )
        across = _ROUNDS_WIDTH if name == "base" else start + width
        parts.append(f'<path class="middle {name}" d="M{start:.1f} {middle:.1f}H{across:.1f}"/>')
    label = (
        f"base {numbers.time_us(base.median_us, 4)} in {_count(base)},"
        f" new {numbers.time_us(new.median_us, 4)} in {_count(new)}"
    )
    return Markup(
        '<svg class="rounds" viewBox="0 0 {w} {h}" role="img" aria-label="{label}"'
        ' preserveAspectRatio="none">{parts}</svg>'
    ).format(w=_ROUNDS_WIDTH, h=_ROUNDS_HEIGHT, label=label, parts=Markup("".join(parts)))


def range_texts(base: Timing, new: Timing) -> tuple[str, str]:
    """Lowest and highest time of that drawing."""
    columns = [*spreads(base), *spreads(new)]
    low, high = min(column.low for column in columns), max(column.high for column in columns)
    return numbers.time_us(low, 4), numbers.time_us(high, 4)


def _count(timing: Timing) -> str:
    rounds = len([samples for samples in timing.rounds_us if samples])
    return f"{rounds} {'round' if rounds == 1 else 'rounds'}, {len(timing.samples_us)} samples"
