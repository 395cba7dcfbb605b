# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A figure that is not what it was, in words, and what of a kernel moved between two neighbouring rungs."""

from math import log

from msgspec import Struct

from gpuprof.analysis import numbers
from gpuprof.analysis.figures import FIGURES, Figure, Subject
from gpuprof.results import Measurement, Run

#: A figure that moved by less than this share explains nothing.
_NOTABLE = 0.05
_MOST_SHOWN = 3
#: From which factor on a count's is spelt out.
_SPELT_OUT = 2.0
#: What a kernel is given by its source and its launch, what explains most first.
_GIVEN = (
    "spill_bytes",
    "theoretical_occupancy_pct",
    "registers_per_thread",
    "shared_bytes",
    "block_threads",
)


class FigureChange(Struct, frozen=True):
    """A figure that is not what it was; None where it was not known, or is not any more."""

    figure: Figure
    before: float | str | None
    after: float | str | None

    @property
    def ratio(self) -> float | None:
        """How many times what it was; None where there is no such factor."""
        if isinstance(self.before, str) or isinstance(self.after, str):
            return None
        return self.after / self.before if self.before and self.after is not None else None

    @property
    def texts(self) -> tuple[str, str]:
        """Both values in human units; an en dash for none."""
        before, after = (_written(self.figure, value) for value in (self.before, self.after))
        if before == after and self.before != self.after:  # what moved shows in more digits only
            before, after = (_written(self.figure, value, digits=6) for value in (self.before, self.after))
        return before, after

    @property
    def figures(self) -> str:
        """For example `12.5 % → 100 %`, or `330 k → 18,432 (÷17.9)`."""
        factor, ratio = "", self.ratio or 0.0
        if ratio > 0 and numbers.is_count(self.figure.unit) and max(ratio, 1 / ratio) >= _SPELT_OUT:
            factor = f" ({'×' if ratio > 1 else '÷'}{numbers.significant(max(ratio, 1 / ratio))})"
        return f"{' → '.join(self.texts)}{factor}"

    @property
    def text(self) -> str:
        """For example `load efficiency 12.5 % → 100 %`."""
        return f"{self.figure.phrase} {self.figures}"


def changes(run: Run, before: Measurement, after: Measurement) -> tuple[FigureChange, ...]:
    """What a kernel was given that explains the step from one case to the next.

    What hardware did then is told by its bounds: see `limits.shifts`.
    """
    moved = []
    for figure in map(FIGURES.__getitem__, _GIVEN):
        old, new = (figure.value(Subject(run, case)) for case in (before, after))
        if old is None or new is None or old == new:
            continue
        if min(old, new) <= 0 or abs(log(new / old)) > _NOTABLE:
            moved.append(FigureChange(figure, old, new))
    return tuple(moved[:_MOST_SHOWN])


def _written(figure: Figure, value: float | str | None, digits: int = 3) -> str:
    if value is None:
        return "–"
    return value if isinstance(value, str) else figure.write(value, digits)
