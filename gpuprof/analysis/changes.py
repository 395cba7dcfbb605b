# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a kernel was given moved between two neighbouring rungs, and how a change of any figure is written."""

from dataclasses import dataclass
from math import log

from gpuprof.analysis import counts, numbers
from gpuprof.analysis.figure import Figure, Subject
from gpuprof.analysis.figures import FIGURES
from gpuprof.results import Measurement, Run

#: A figure that moved by less than this share explains nothing.
_NOTABLE = 0.05
_MOST_SHOWN = 3
#: Weight of a figure that appears or vanishes and so has no ratio: between a modest and a large change.
_NO_RATIO = 0.7
_SPELT_OUT = 2.0


@dataclass(frozen=True, slots=True)
class Change:
    """One figure before and after in human units.

    `weight` is how much it explains; `factor` says by how much a count grew or shrank, where the figures do
    not show it plainly.
    """

    label: str
    before: str
    after: str
    weight: float
    factor: str = ""

    @property
    def figures(self) -> str:
        """For example `12.5 % → 100 %`."""
        return f"{self.before} → {self.after}{self.factor}"

    @property
    def text(self) -> str:
        """For example `load efficiency 12.5 % → 100 %`."""
        return f"{self.label} {self.figures}"


#: What a kernel is given by its source and its launch.
_GIVEN = (
    "theoretical_occupancy_pct",
    "registers_per_thread",
    "shared_bytes",
    "spill_bytes",
    "block_threads",
)


def changes(run: Run, before: Measurement, after: Measurement) -> tuple[Change, ...]:
    """What a kernel was given that explains most of the step from one case to the next, most telling first.

    What hardware did then is told by its bounds: see `limits.shifts`.
    """
    moved = []
    for figure in map(FIGURES.__getitem__, _GIVEN):
        old, new = (figure.value(Subject(run, case)) for case in (before, after))
        if old is None or new is None or old == new:
            continue
        size = abs(log(new / old)) if old > 0 and new > 0 else _NO_RATIO
        if size > _NOTABLE:
            moved.append(change(figure, old, new, size * figure.telling))
    return tuple(sorted(moved, key=lambda item: -item.weight)[:_MOST_SHOWN])


def change(figure: Figure, old: float, new: float, weight: float = 0.0) -> Change:
    """One figure's step in words."""
    factor = _factor(old, new) if numbers.is_count(figure.unit) else ""
    return Change(figure.phrase, figure.write(old), figure.write(new), weight, factor)


def counted(case: Measurement) -> bool:
    """True when any counter of a case has a value, whoever counted."""
    return any(counter.value is not None for counter in counts.held(case).values())


def _factor(old: float, new: float) -> str:
    if old <= 0 or new <= 0 or max(new / old, old / new) < _SPELT_OUT:
        return ""
    return f" (×{numbers.significant(new / old)})" if new > old else f" (÷{numbers.significant(old / new)})"
