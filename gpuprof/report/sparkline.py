# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Every sample of a case as a small strip, in the order taken: drift and outliers show at a glance."""

from markupsafe import Markup

from gpuprof.analysis import numbers
from gpuprof.results import Timing

_WIDTH, _HEIGHT = 180, 28
_MOST_COLUMNS = 90
#: Half of the least vertical span, relative to the median, so that a quiet kernel does not look restless.
_LEAST_SPAN = 0.01


def sparkline(timing: Timing) -> Markup:
    """An inline SVG; each column spans the samples that fall into it."""
    samples = timing.samples_us
    if not samples:
        return Markup("")
    low = min(min(samples), timing.median_us * (1 - _LEAST_SPAN))
    high = max(max(samples), timing.median_us * (1 + _LEAST_SPAN))
    columns = min(len(samples), _MOST_COLUMNS)

    def y(value: float) -> float:
        return (_HEIGHT - 2) * (high - value) / (high - low) + 1

    strokes = []
    for column in range(columns):
        held = samples[column * len(samples) // columns : (column + 1) * len(samples) // columns]
        x = (column + 0.5) * _WIDTH / columns
        top, bottom = y(max(held)), y(min(held))
        strokes.append(f"M{x:.1f} {top - 0.8:.1f}V{bottom + 0.8:.1f}")
    label = (
        f"{len(samples)} cold samples in the order taken,"
        f" {numbers.time_us(min(samples), 4)} to {numbers.time_us(max(samples), 4)}"
    )
    middle = y(timing.median_us)
    return Markup(
        '<svg class="spark" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" aria-label="{label}">'
        '<title>{label}</title><path class="median" d="M0 {m:.1f}H{w}"/><path d="{path}"/></svg>'
    ).format(w=_WIDTH, h=_HEIGHT, label=label, m=middle, path="".join(strokes))
