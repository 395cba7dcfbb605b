# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Small inline drawings of a comparison: where a change may lie, and how the rounds of both spread."""

from collections.abc import Sequence

from markupsafe import Markup

from gpuprof.analysis import numbers
from gpuprof.comparison.compared import percent
from gpuprof.comparison.judging import Judgement, spreads
from gpuprof.results import Timing

_WIDTH, _HEIGHT = 140, 14
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


def rounds_picture(base: Timing, new: Timing) -> tuple[Markup, str]:
    """Both versions side by side on one axis of time, and what the axis is, in words.

    A column is a round, or of few rounds a stretch of samples: from p05 to p95, its median marked.
    """
    sides = [spreads(timing) for timing in (base, new)]
    lowest = min(low for side in sides for low, _, _ in side)
    highest = max(high for side in sides for _, _, high in side)
    margin = 0.04 * (highest - lowest or highest)

    def y(time: float) -> str:
        share = (highest + margin - time) / (highest - lowest + 2 * margin)
        return f"{(_ROUNDS_HEIGHT - 2) * share + 1:.1f}"

    width = (_ROUNDS_WIDTH - _GAP) / 2
    parts = []
    for number, (name, timing, columns) in enumerate(zip(("base", "new"), (base, new), sides, strict=True)):
        start, step = number * (width + _GAP), width / len(columns)
        half = max(1.0, min(7.0, step * 0.3))
        spans, marks = "", ""
        for index, (low, middle, high) in enumerate(columns):
            x = start + (index + 0.5) * step
            spans += f"M{x:.1f} {y(high)}V{y(low)}"
            marks += f"M{x - half:.1f} {y(middle)}h{2 * half:.1f}"
        across = _ROUNDS_WIDTH if name == "base" else start + width
        line = f"M{start:.1f} {y(timing.median_us)}H{across:.1f}"
        parts += [
            f'<path class="{kind} {name}" d="{path}"/>'
            for kind, path in (("span", spans), ("mark", marks), ("middle", line))
        ]
    label = ", ".join(
        f"{name} {numbers.time_us(timing.median_us, 4)} in {_count(timing)}"
        for name, timing in (("base", base), ("new", new))
    )
    drawn = Markup(
        f'<svg class="rounds" viewBox="0 0 {_ROUNDS_WIDTH} {_ROUNDS_HEIGHT}" role="img" aria-label="{label}"'
        f' preserveAspectRatio="none">{"".join(parts)}</svg>'
    )
    ends = " to ".join(numbers.time_us(end, 4) for end in (lowest, highest))
    return drawn, f"Rounds of the base, then of the new run; {ends}, medians as lines."


def _count(timing: Timing) -> str:
    rounds = len([samples for samples in timing.rounds_us if samples])
    return f"{rounds} {'round' if rounds == 1 else 'rounds'}, {len(timing.samples_us)} samples"
