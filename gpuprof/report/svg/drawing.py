# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What every drawing is made of: elements as text, and axes.

Whatever a text or an attribute holds, it stays text. Places are shares of the drawing's width and height in
percent, so that a drawing follows the page's width while its text and its marks keep their size.
"""

from functools import lru_cache
from math import ceil, floor, log10

from markupsafe import Markup, escape
from msgspec import Struct

from gpuprof.analysis import numbers
from gpuprof.text import visible

#: Steps between marked values within a decade.
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
#: A logarithmic axis of few decades marks these of each.
_WITHIN_DECADE = (1.0, 2.0, 5.0)
_FEW_DECADES = 2.2
#: Widths of letters in font sizes: those of the widest of the fonts that the page may be shown in.
_WIDE, _USUAL, _NARROW = 0.97, 0.65, 0.42


def element(name: str, *content: Markup | str, **attributes: object) -> Markup:
    """One element: markup in it stays as it is, text is escaped and made visible.

    In names of attributes `_` stands for `-`, and at the end for nothing; None leaves one out.
    """
    written = "".join(
        [f' {_name(key)}="{text(value)}"' for key, value in attributes.items() if value is not None]
    )
    inner = "".join(map(text, content))
    return Markup(f"<{name}{written}>{inner}</{name}>" if content else f"<{name}{written}/>")


def text(value: object) -> str:
    """A value as it may stand in an element or an attribute."""
    return value if isinstance(value, Markup) else _escaped(str(value))


@lru_cache(4096)
def _name(key: str) -> str:
    return key.strip("_").replace("_", "-")


# Names of kernels, classes and places recur in every drawing of a ladder.
@lru_cache(4096)
def _escaped(value: str) -> str:
    return str(escape(visible(value)))


def place(share: float) -> str:
    """A share of 1 as a percentage that a hundredth of a pixel cannot tell from it."""
    return f"{number(100 * share)}%"


def number(value: float) -> str:
    """A length with at most two decimals."""
    written = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if written in ("-0", "") else written


class Scale(Struct, frozen=True):
    """One axis from `low` to `high`; of a logarithmic one both are above 0."""

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
    """About how wide a line of a font of so many pixels is, from above: nothing may be cut off."""
    return (
        sum(
            _WIDE if letter in "MWmw@%—" else _NARROW if letter in "il.,:;|' ()·" else _USUAL
            for letter in text
        )
        * size
    )
