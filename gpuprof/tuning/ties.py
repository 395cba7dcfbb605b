# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Who is best, and who cannot be told apart from the best."""

from collections.abc import Mapping
from typing import TypeVar

from gpuprof.comparison.judging import judge, times_of
from gpuprof.results import Measurement

Key = TypeVar("Key")

#: Bounds within this share are one: counts of a sample of blocks are no closer.
ALIKE_BOUNDS = 1e-3


def tied_by_time(cases: Mapping[Key, Measurement]) -> list[Key]:
    """The best of cases that ended well, then those that are not slower for certain, by their rounds."""
    times = {key: found for key, case in cases.items() if (found := times_of(case)).medians_us}
    order = sorted(times, key=lambda key: time_of(cases[key]) or 0.0)
    if not order:
        return []
    best = order[0]
    return [best] + [key for key in order[1:] if judge(times[best], times[key]).verdict != "regressed"]


def tied_by_bound(bounds_us: Mapping[Key, float]) -> list[Key]:
    """The points of the lowest bound, and those that are as low."""
    order = sorted(bounds_us, key=lambda key: bounds_us[key])
    return [key for key in order if bounds_us[key] <= bounds_us[order[0]] * (1 + ALIKE_BOUNDS)]


def time_of(case: Measurement) -> float | None:
    """A case's measured time in microseconds; None where it has none."""
    ended_well = case.outcome == "ok" and case.timing is not None and case.timing.cold is not None
    return case.timing.cold.median_us if ended_well and case.timing and case.timing.cold else None


def bound_of(case: Measurement) -> float | None:
    """A case's bound in microseconds; None where it was not counted, or is wrong."""
    return case.bounds[case.bound_by].least_us if case.outcome == "ok" and case.bound_by else None


def value_of(case: Measurement, *, timed: bool) -> float | None:
    """What decides of a case, in microseconds: its time, or its bound; None where it has none."""
    return time_of(case) if timed else bound_of(case)
