# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Changes on an axis with none in its middle: one with its interval, and those of many cards; and rounds."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup, escape

from gpuprof.analysis import numbers
from gpuprof.comparison.compared import percent
from gpuprof.comparison.judging import Judgement, spreads
from gpuprof.report.svg.drawing import element, number, place
from gpuprof.results import Timing

#: Where an axis may end, in percent.
_ENDS = (1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 20.0, 50.0, 100.0)
#: Share of a table's changes, and of many cards', that an axis holds; the others are drawn at its end.
_WITHIN_TABLE, _WITHIN_CARDS = 0.85, 0.995
_WIDTH, _HEIGHT, _GAP = 140, 14, 14
_ROUNDS_WIDTH, _ROUNDS_HEIGHT = 460, 110
#: Columns of the distribution, an odd number so that one of them is the middle.
_COLUMNS = 81
#: Heights of its drawing and of the marks below the columns, in pixels.
_STRIP_HEIGHT, _MARKS = 34, 9
#: A column with one card among a thousand is still to be seen.
_LEAST_SHARE = 0.06


def end_of_table(found: Sequence[Judgement]) -> float:
    """Where the axis of a table's changes ends to both sides, in percent.

    The few that changed most do not stretch it, or small changes of the others could not be seen.
    """
    return _end([max(map(abs, (item.change, item.low, item.high))) for item in found], _WITHIN_TABLE)


def end_of_axis(changes: Sequence[float], marked: Sequence[float]) -> float:
    """Where an axis of many cards' changes ends to both sides, in percent: `marked` lie on it."""
    return _end([abs(change) for change in changes], _WITHIN_CARDS, sorted(map(abs, marked)))


def _end(reaches: Sequence[float], within: float, marked: Sequence[float] = ()) -> float:
    ordered = sorted(reaches)
    widest = ordered[int(within * (len(ordered) - 1))] if ordered else 0.0
    typical = marked[len(marked) // 2] if marked else 0.0
    return next((end for end in _ENDS if 105 * max(widest, typical) <= end), _ENDS[-1])


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
        height=_STRIP_HEIGHT - _MARKS,
        class_="columns",
    )
    dots = [
        element(
            "circle",
            element("title", f"{card}: {percent(changes[card])}"),
            cx=place((0.5 + _share(changes[card], end) * (_COLUMNS - 1)) / _COLUMNS),
            cy=_STRIP_HEIGHT - _MARKS / 2,
            r="3",
            class_="outlier" if confirmed else "unsure",
        )
        for card, confirmed in marked.items()
        if card in changes
    ]
    middle = element("line", x1="50%", x2="50%", y1="0", y2=_STRIP_HEIGHT, class_="middle")
    low, high = min(changes.values()), max(changes.values())
    label = f"{len(changes):,} cards, {percent(low)} to {percent(high)}, {len(dots)} marked"
    return element(
        "svg",
        middle,
        columns,
        *dots,
        class_="strip",
        height=_STRIP_HEIGHT,
        width="100%",
        role="img",
        aria_label=label,
    )


def _share(change: float, end: float) -> float:
    return min(1.0, max(0.0, 0.5 + 50 * change / end))
