# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Every cold sample of a case: in the order taken, by round, and beside it sorted, on one axis of time."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import median

from markupsafe import Markup

from gpuprof.analysis import numbers
from gpuprof.report.svg.drawing import Scale, element, number, place
from gpuprof.results import Timing

_HEIGHT = 96
#: Strokes of the strip and points of the curve; a stroke spans the samples that fall into it.
_COLUMNS, _POINTS = 60, 24
#: Half of the least span in shares of the median, so that a quiet kernel does not look restless.
_LEAST_SPAN = 0.01
#: How far beyond the 5th and 95th percentile the axis reaches, in their distance: one outlier hides no rest.
_REACH = 1.5
#: Width of the field on which lines are drawn before they are stretched; its height is in pixels. Every digit
#: counts where cases are many.
_WIDTH = 360
#: What lies between rounds, and what makes a single sample visible.
_GAP, _DOT = 4, 1


@dataclass(frozen=True, slots=True)
class _Axis:
    scale: Scale
    beyond: int

    def above(self, sample: float) -> float:
        """Share of the height that lies above a sample; what is beyond stands at the edge."""
        return 1 - min(1.0, max(0.0, self.scale.share(sample)))

    def y(self, sample: float) -> int:
        """The same in pixels."""
        return round(_HEIGHT * self.above(sample))


def sample_strip(timing: Timing, size: str) -> Markup:
    """The cold samples of a case at a size, behind one line that tells their number."""
    samples = timing.samples_us
    if not samples:
        return Markup("")
    axis = _axis(timing)
    words = _words(timing, axis)
    named = f"Samples at {size}: {_count_phrase(timing)}"
    return element(
        "details",
        element("summary", named),
        element("p", words, class_="soft"),
        element(
            "div",
            _panel(
                axis, timing, _strip(timing, axis), "in the order taken" + _by_round(timing), labelled=True
            ),
            _panel(axis, timing, _sorted(samples, axis), "sorted, 0 to 100 %", labelled=False),
            class_="samples",
        ),
        class_="samples-of",
    )


def _count_phrase(timing: Timing) -> str:
    """For example `384 samples in 3 rounds`."""
    count, rounds = len(timing.samples_us), len(timing.rounds_us)
    samples = numbers.plural(count, "sample")
    return samples if rounds < 2 else f"{samples} in {rounds} rounds"


def _by_round(timing: Timing) -> str:
    return ", by round" if len(timing.rounds_us) > 1 else ""


def _axis(timing: Timing) -> _Axis:
    samples, middle = timing.samples_us, timing.median_us
    reach = _REACH * (timing.p95_us - timing.p05_us)
    low = min(max(min(samples), timing.p05_us - reach), middle * (1 - _LEAST_SPAN))
    high = max(min(max(samples), timing.p95_us + reach), middle * (1 + _LEAST_SPAN))
    beyond = sum(sample < low or sample > high for sample in samples)
    return _Axis(Scale(low, high), beyond)


def _words(timing: Timing, axis: _Axis) -> str:
    def time(value: float) -> str:
        return numbers.time_us(value, 4)

    parts = [f"Median {time(timing.median_us)}"]
    if timing.ci95_rel is None:
        parts.append("too few samples for an interval")
    else:
        ends = (timing.median_us * (1 + sign * timing.ci95_rel) for sign in (-1, 1))
        parts.append(f"95 % interval {' to '.join(map(time, ends))}")
    parts.append(f"p05 {time(timing.p05_us)}, p95 {time(timing.p95_us)}")
    if len(timing.rounds_us) > 1:
        middles = [median(samples) for samples in timing.rounds_us if samples]
        parts.append(f"medians of rounds {time(min(middles))} to {time(max(middles))}")
    if axis.beyond:
        least, most = time(min(timing.samples_us)), time(max(timing.samples_us))
        parts.append(f"{axis.beyond:,} beyond the drawing; all lie from {least} to {most}")
    if timing.dropped:
        parts.append(f"{timing.dropped:,} set aside, taken while the GPU was throttled")
    return f"{'; '.join(parts)}."


def _panel(axis: _Axis, timing: Timing, paths: Sequence[Markup], below: str, *, labelled: bool) -> Markup:
    """One part: the interval as a band, the median as a line, times at the left."""
    middle = place(axis.above(timing.median_us))
    drawn = [element("line", x1="0", x2="100%", y1=middle, y2=middle, class_="median")]
    if timing.ci95_rel:
        top, foot = (axis.above(timing.median_us * (1 + sign * timing.ci95_rel)) for sign in (1, -1))
        drawn.insert(0, element("rect", width="100%", y=place(top), height=place(foot - top)))
    lines = element(
        "svg",
        *paths,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        preserveAspectRatio="none",
        width="100%",
        height="100%",
    )
    texts = _times(axis, timing) if labelled else []
    texts.append(element("text", below, x="0", y=_HEIGHT + 15))
    return element("svg", element("title", below), *drawn, lines, *texts, height=_HEIGHT, role="img")


def _times(axis: _Axis, timing: Timing) -> list[Markup]:
    """The ends of the axis, and the median where it does not touch them."""
    values = [axis.scale.low, axis.scale.high]
    if 0.18 < axis.scale.share(timing.median_us) < 0.82:
        values.append(timing.median_us)
    return [
        element(
            "text",
            numbers.time_us(value, 4),
            x="-6",
            y=number(4 + _HEIGHT * axis.above(value)),
            text_anchor="end",
        )
        for value in values
    ]


def _strip(timing: Timing, axis: _Axis) -> list[Markup]:
    """Strokes of each round, one round beside the other."""
    rounds = [samples for samples in timing.rounds_us if samples]
    count = sum(map(len, rounds))
    width = (_WIDTH - _GAP * (len(rounds) - 1)) / count
    starts = accumulate((len(samples) * width + _GAP for samples in rounds), initial=0.0)
    strokes, middles = [], []
    at = (0, 0)
    for start, samples in zip(starts, rounds, strict=False):
        columns = min(len(samples), max(1, round(_COLUMNS * len(samples) / count)))
        for column in range(columns):
            held = samples[column * len(samples) // columns : (column + 1) * len(samples) // columns]
            x = round(start + (column + 0.5) * len(samples) * width / columns)
            top, foot = axis.y(max(held)) - _DOT, axis.y(min(held)) + _DOT
            strokes.append(f"m{x - at[0]} {top - at[1]}v{foot - top}".replace(" -", "-"))
            at = (x, foot)
        middles.append(f"M{start:.0f} {axis.y(median(samples))}h{len(samples) * width:.0f}")
    drawn = [element("path", d="".join(strokes))]
    return [*drawn, element("path", d="".join(middles), class_="of-round")] if len(rounds) > 1 else drawn


def _sorted(samples: Sequence[float], axis: _Axis) -> list[Markup]:
    """The samples by rank: where the curve is level, many are alike."""
    ordered = sorted(samples)
    points = min(len(ordered), _POINTS)
    last = max(1, points - 1)
    ranks = [round(step * (len(ordered) - 1) / last) for step in range(points)]
    steps = (
        f"{_WIDTH * (rank + 0.5) / len(ordered):.0f} {axis.y(ordered[rank])}" for rank in dict.fromkeys(ranks)
    )
    return [element("path", d="M" + "L".join(steps), class_="curve")]
