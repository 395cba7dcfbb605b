# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What moved between two neighbouring rungs: counters where they exist, resources and occupancy otherwise."""

from collections.abc import Callable
from dataclasses import dataclass
from math import log

from gpuprof.analysis import counters, numbers
from gpuprof.results import Measurement

#: A figure that moved by less than this share explains nothing.
_NOTABLE = 0.05
_MOST_SHOWN = 3
#: Weight of a figure that appears or vanishes and so has no ratio: between a modest and a large change.
_NO_RATIO = 0.7
_SPELT_OUT = 2.0


@dataclass(frozen=True, slots=True)
class Change:
    """One figure before and after.

    Args:
        label: What moved.
        before: In human units.
        after: In human units.
        weight: How much it explains, for sorting.
        factor: By how much a count grew or shrank, in words; empty where the figures show it plainly.
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


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure to compare.

    Args:
        label: Its name within a sentence.
        read: Takes it from a case; None where it was not measured.
        write: In human units.
        telling: Raises what says why above what merely follows from it.
    """

    label: str
    read: Callable[[Measurement], float | None]
    write: Callable[[float], str]
    telling: float = 1.0


def _shared_bytes(case: Measurement) -> float | None:
    held = case.resources
    return held.static_shared_bytes + held.dynamic_shared_bytes if held else None


_COUNTER_FIGURES = (
    Figure(
        "load efficiency",
        lambda case: counters.value(case, "global_load_efficiency_pct"),
        numbers.percent,
        telling=4.0,
    ),
    Figure(
        "store efficiency",
        lambda case: counters.value(case, "global_store_efficiency_pct"),
        numbers.percent,
        telling=4.0,
    ),
    Figure("global sectors", counters.global_sectors, numbers.count, telling=2.0),
    Figure(
        "global requests",
        lambda case: counters.total(case, *counters.GLOBAL_REQUESTS),
        numbers.count,
        telling=0.5,
    ),
    Figure(
        "shared wavefronts",
        lambda case: counters.total(case, *counters.SHARED_WAVEFRONTS),
        numbers.count,
    ),
    Figure(
        "bank conflicts",
        lambda case: counters.address_conflicts(case, "load", "store"),
        numbers.count,
        telling=2.0,
    ),
    Figure("barriers", lambda case: counters.value(case, "barriers"), numbers.count, telling=0.3),
    Figure(
        "DRAM bytes read",
        lambda case: counters.value(case, "dram_read_bytes"),
        numbers.size,
        telling=0.5,
    ),
)

#: By the names that kernel headers use.
RESOURCE_FIGURES = {
    "theoretical_occupancy_pct": Figure(
        "occupancy",
        lambda case: case.occupancy.theoretical_pct if case.occupancy else None,
        numbers.percent,
        telling=2.0,
    ),
    "registers_per_thread": Figure(
        "registers",
        lambda case: case.resources.registers_per_thread if case.resources else None,
        numbers.count,
    ),
    "shared_bytes": Figure("shared memory", _shared_bytes, numbers.size),
    "spill_bytes": Figure(
        "spills",
        lambda case: case.resources.spill_bytes if case.resources else None,
        numbers.size,
        telling=3.0,
    ),
    "block_threads": Figure(
        "threads per block", lambda case: case.block[0] * case.block[1] * case.block[2], numbers.count
    ),
}


def changes(before: Measurement, after: Measurement) -> tuple[Change, ...]:
    """The figures that explain most of the step from one case to the next, most telling first.

    Counters come first because they say what the hardware did; resources only say what it was given.
    """
    moved = _moved(_COUNTER_FIGURES, before, after) or _moved(tuple(RESOURCE_FIGURES.values()), before, after)
    return tuple(sorted(moved, key=lambda item: -item.weight)[:_MOST_SHOWN])


def change(figure: Figure, old: float, new: float, weight: float = 0.0) -> Change:
    """One figure's step in words."""
    factor = _factor(old, new) if figure.write is numbers.count else ""
    return Change(figure.label, figure.write(old), figure.write(new), weight, factor)


def counted(case: Measurement) -> bool:
    """True when any counter of a case has a value, whoever counted."""
    return any(counter.value is not None for counter in counters.held(case).values())


def _moved(figures: tuple[Figure, ...], before: Measurement, after: Measurement) -> list[Change]:
    found = []
    for figure in figures:
        old, new = figure.read(before), figure.read(after)
        if old is None or new is None or old == new:
            continue
        size = abs(log(new / old)) if old > 0 and new > 0 else _NO_RATIO
        if size <= _NOTABLE:
            continue
        found.append(change(figure, old, new, size * figure.telling))
    return found


def _factor(old: float, new: float) -> str:
    if old <= 0 or new <= 0 or max(new / old, old / new) < _SPELT_OUT:
        return ""
    return f" (×{numbers.significant(new / old)})" if new > old else f" (÷{numbers.significant(old / new)})"
