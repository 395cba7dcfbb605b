# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Who is best, who cannot be told apart from the best, and who is best everywhere."""

import math
from collections.abc import Mapping
from typing import TypeVar

from gpuprof.comparison.judging import judge, times_of
from gpuprof.kernels.kernel import Kernel
from gpuprof.results import Measurement, Run
from gpuprof.tuning.space import Point, is_default, point_of

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


def best_everywhere(run: Run, kernels: Mapping[str, Kernel]) -> tuple[Point | None, dict[str, float]]:
    """The point to take at every size and on every device that a run searched, where it must be one.

    One that is tied with the best everywhere, the header's own before others; else, of those that were
    measured everywhere, the one that takes least by the geometric mean.

    Returns:
        The point, None where none gave a right result; and the sizes at which another one is better, with how
        much longer it takes there, as a share.
    """
    found = [tuned for tuned in (run.tuning.sizes if run.tuning else ()) if tuned.ties]
    tied = [[point_of(one, kernels[one.kernel]) for one in tuned.ties] for tuned in found]
    values: dict[Point, list[float]] = {}
    for tuned in found:
        held = {
            point_of(case, kernels[case.kernel]): value
            for case in run.cases
            if (case.device, case.problem.sizes) == (tuned.device, tuned.problem.sizes)
            and case.kernel in kernels
            and (value := value_of(case, timed=tuned.by == "time"))
        }
        least = min(held.values(), default=0.0)
        for point, value in held.items():
            values.setdefault(point, []).append(value / least)
    measured = [point for point, shares in values.items() if len(shares) == len(found)]
    common = [point for point in measured if all(point in points for points in tied)]
    if not measured:
        return None, {}
    best = min(
        common or measured,
        key=lambda point: (
            not (common and is_default(point, kernels[point.kernel])),
            sum(map(math.log, values[point])),
        ),
    )
    several = len(run.devices) > 1
    return best, {
        f"{tuned.problem.label}{f' on {run.device_label(tuned.device)}' if several else ''}": share - 1
        for tuned, points, share in zip(found, tied, values[best], strict=True)
        if best not in points
    }
