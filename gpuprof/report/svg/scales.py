# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Axes: where a value lies between an axis' ends, and which round values are marked along it."""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, floor, log10

from gpuprof.analysis import numbers

#: Steps between marked values within a decade.
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
#: A logarithmic axis of few decades marks these of each.
_WITHIN_DECADE = (1.0, 2.0, 5.0)
_FEW_DECADES = 2.2


@dataclass(frozen=True, slots=True)
class Scale:
    """One axis.

    Args:
        low: Value at its foot.
        high: Value at its end, above `low`.
        logarithmic: Equal distances are equal factors; both ends are then above 0.
    """

    low: float
    high: float
    logarithmic: bool = False

    def share(self, value: float) -> float:
        """Where a value lies: 0 at the foot, 1 at the end; a logarithm has nothing below its foot."""
        if not self.logarithmic:
            return (value - self.low) / (self.high - self.low)
        if value <= self.low:
            return 0.0
        return log10(value / self.low) / log10(self.high / self.low)

    def ticks(self, most: int) -> tuple[float, ...]:
        """Round values on the axis, at most so many."""
        return self._powers(most) if self.logarithmic else self._multiples(most)

    def _multiples(self, most: int) -> tuple[float, ...]:
        span = self.high - self.low
        decade = 10.0 ** floor(log10(span / most))
        step = next((step * decade for step in _STEPS if span / (step * decade) <= most), 10 * decade)
        first, last = ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9)
        return tuple(count * step for count in range(first, last + 1))

    def _powers(self, most: int) -> tuple[float, ...]:
        decades = range(floor(log10(self.low)), ceil(log10(self.high)) + 1)
        within = _WITHIN_DECADE if log10(self.high / self.low) <= _FEW_DECADES else (1.0,)
        values = [factor * 10.0**decade for decade in decades for factor in within]
        shown = [
            value for value in values if self.low <= value * (1 + 1e-9) and value <= self.high * (1 + 1e-9)
        ]
        stride = ceil(len(shown) / most) if shown else 1
        return tuple(shown[::stride])


def tick_text(value: float) -> str:
    """A marked value, without decimals that say nothing."""
    if value == 0:
        return "0"
    if abs(value) >= 1e6:
        return numbers.count(value)
    return numbers.brief(value)


@lru_cache(4096)
def width_of(text: str, size: float) -> float:
    """About how wide a text is in pixels, from above: fonts differ, and nothing may be cut off.

    Args:
        text: On one line.
        size: The font's, in pixels.
    """
    return (
        sum(
            _WIDE if letter in "MWmw@%—" else _NARROW if letter in "il.,:;|' ()·" else _USUAL
            for letter in text
        )
        * size
    )


#: Widths of letters in font sizes: those of the widest of the fonts that the page may be shown in.
_WIDE, _USUAL, _NARROW = 0.97, 0.65, 0.42
