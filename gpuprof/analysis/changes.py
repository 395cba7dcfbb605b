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


@dataclass(frozen=True, slots=True)
class Change:
    """One figure before and after.

    Args:
        label: What moved.
        before: In human units.
        after: In human units.
        weight: How strongly it moved, for sorting.
        factor: After over before, None where before is 0.
    """

    label: str
    before: str
    after: str
    weight: float
    factor: float | None

    @property
    def text(self) -> str:
        """For example `load efficiency 12.5 % → 100 %`."""
        return f"{self.label} {self.before} → {self.after}"


_Figure = tuple[str, Callable[[Measurement], float | None], Callable[[float], str]]

_COUNTER_FIGURES: tuple[_Figure, ...] = (
    ("load efficiency", lambda case: counters.value(case, "global_load_efficiency_pct"), numbers.percent),
    ("store efficiency", lambda case: counters.value(case, "global_store_efficiency_pct"), numbers.percent),
    ("global sectors", counters.global_sectors, numbers.count),
    (
        "global requests",
        lambda case: counters.total(case, *counters.GLOBAL_REQUESTS),
        numbers.count,
    ),
    (
        "shared wavefronts",
        lambda case: counters.total(case, *counters.SHARED_WAVEFRONTS),
        numbers.count,
    ),
    ("bank conflicts", counters.bank_conflicts, numbers.count),
    ("barriers", lambda case: counters.value(case, "barriers"), numbers.count),
)

_RESOURCE_FIGURES: tuple[_Figure, ...] = (
    (
        "occupancy",
        lambda case: case.occupancy.theoretical_pct if case.occupancy else None,
        numbers.percent,
    ),
    (
        "registers",
        lambda case: case.resources.registers_per_thread if case.resources else None,
        numbers.count,
    ),
    (
        "shared memory",
        lambda case: (
            case.resources.static_shared_bytes + case.resources.dynamic_shared_bytes
            if case.resources
            else None
        ),
        numbers.size,
    ),
    ("spills", lambda case: case.resources.spill_bytes if case.resources else None, numbers.size),
    ("threads per block", lambda case: case.block[0] * case.block[1] * case.block[2], numbers.count),
)


def changes(before: Measurement, after: Measurement) -> tuple[Change, ...]:
    """The figures that moved most from one case to the next, largest first.

    Counters come first because they say what the hardware did; resources only say what it was given.
    """
    moved = _moved(_COUNTER_FIGURES, before, after)
    if not moved:
        moved = _moved(_RESOURCE_FIGURES, before, after)
    return tuple(sorted(moved, key=lambda change: -change.weight)[:_MOST_SHOWN])


def counted(case: Measurement) -> bool:
    """True when any counter of a case has a value, whoever counted."""
    return any(counter.value is not None for counter in counters.held(case).values())


def _moved(figures: tuple[_Figure, ...], before: Measurement, after: Measurement) -> list[Change]:
    found = []
    for label, read, write in figures:
        old, new = read(before), read(after)
        if old is None or new is None or old == new:
            continue
        # A figure that appears or vanishes has no ratio: it outranks any ratio.
        weight = abs(log(new / old)) if old > 0 and new > 0 else 100.0
        if weight > _NOTABLE:
            found.append(Change(label, write(old), write(new), weight, new / old if old else None))
    return found
