# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A change with its interval on an axis with none in its middle, and the rounds of one version or two."""

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup, escape

from gpuprof.analysis import numbers
from gpuprof.comparison.compared import percent
from gpuprof.comparison.judging import Judgement, spreads
from gpuprof.results import Timing

#: Where an axis may end, in percent.
_ENDS = (1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 20.0, 50.0, 100.0)
#: Share of a table's changes that an axis holds; the others are drawn at its end.
_WITHIN_TABLE = 0.85
_WIDTH, _HEIGHT, _GAP = 140, 14, 14
_ROUNDS_WIDTH, _ROUNDS_HEIGHT = 460, 110


def end_of_table(found: Sequence[Judgement]) -> float:
    """Where the axis of a table's changes ends to both sides, in percent.

    The few that changed most do not stretch it, or small changes of the others could not be seen.
    """
    reaches = sorted(max(map(abs, (item.change, item.low, item.high))) for item in found)
    widest = reaches[math.ceil(_WITHIN_TABLE * (len(reaches) - 1))]
    return next((end for end in _ENDS if 105 * widest <= end), _ENDS[-1])


def change_picture(found: Judgement, verdict: str, end: float) -> Markup:
    """The estimate as a dot in the colour of its verdict, its interval as a line; the middle is no change.

    The axis ends at so many percent to both sides.
    """

    def x(change: float) -> float:
        return round(_WIDTH / 2 * (1 + max(-1.0, min(1.0, 100 * change / end))), 1)

    y = _HEIGHT // 2
    beyond = "".join(
        f"M{x(side)} {y - 4}l{4 * sign} 4l{-4 * sign} 4"
        for side, sign in ((found.low, -1), (found.high, 1))
        if abs(100 * side) > end
    )
    label = f"{percent(found.change)}, {percent(found.low)} to {percent(found.high)}"
    return Markup(
        f'<svg class="change {verdict}" viewBox="-5 0 {_WIDTH + 10} {_HEIGHT}" width="{_WIDTH + 10}"'
        f' height="{_HEIGHT}" role="img" aria-label="{label}"><path d="M{x(found.low)} {y}H{x(found.high)}'
        f'{beyond}"/><circle cx="{x(found.change)}" cy="{y}" r="3.5"/></svg>'
    )


def rounds_picture(versions: Mapping[str, Timing]) -> tuple[Markup, str]:
    """The times of one version or of two side by side, on one axis, and what the axis is, in words.

    A column is a round, or of few rounds a stretch of samples: from p05 to p95, its median marked. The first
    version's median goes on as a line over what stands behind it.
    """
    sides = [spreads(timing) for timing in versions.values()]
    lowest = min(low for side in sides for low, _, _ in side)
    highest = max(high for side in sides for _, _, high in side)
    margin = 0.04 * (highest - lowest or highest or 1.0)

    def y(time: float) -> str:
        share = (highest + margin - time) / (highest - lowest + 2 * margin)
        return f"{(_ROUNDS_HEIGHT - 2) * share + 1:.1f}"

    width = (_ROUNDS_WIDTH - _GAP * (len(sides) - 1)) / len(sides)
    parts = []
    for at, (timing, columns) in enumerate(zip(versions.values(), sides, strict=True)):
        start, step = at * (width + _GAP), width / len(columns)
        half = max(1.0, min(7.0, step * 0.3))
        spans, marks = "", ""
        for index, (low, middle, high) in enumerate(columns):
            x = start + (index + 0.5) * step
            spans += f"M{x:.1f} {y(high)}V{y(low)}"
            marks += f"M{x - half:.1f} {y(middle)}h{2 * half:.1f}"
        across = start + width if at else _ROUNDS_WIDTH
        line = f"M{start:.1f} {y(timing.median_us)}H{across:.1f}"
        name = "new" if at == len(sides) - 1 else "base"
        parts += [
            f'<path class="{kind} {name}" d="{path}"/>'
            for kind, path in (("span", spans), ("mark", marks), ("middle", line))
        ]
    label = ", ".join(
        f"{name} {numbers.time_us(timing.median_us, 4)} in {samples_text(timing)}"
        for name, timing in versions.items()
    )
    drawn = Markup(
        f'<svg class="rounds" viewBox="0 0 {_ROUNDS_WIDTH} {_ROUNDS_HEIGHT}" role="img"'
        f' aria-label="{escape(label)}" preserveAspectRatio="none">{"".join(parts)}</svg>'
    )
    ends = " to ".join(numbers.time_us(end, 4) for end in (lowest, highest))
    of = ", then of ".join(versions)
    return drawn, f"In the order taken, {of}: from p05 to p95 of each round or stretch; {ends}."


def samples_text(timing: Timing) -> str:
    """For example `384 samples in 3 rounds`."""
    rounds = len([samples for samples in timing.rounds_us if samples])
    told = numbers.plural(len(timing.samples_us), "sample")
    return told if rounds < 2 else f"{told} in {rounds} rounds"
