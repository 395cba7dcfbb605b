# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Who is best, who cannot be told apart from the best, and who is best everywhere."""

import math
from collections.abc import Mapping
from typing import TypeVar

from gpuprof.analysis.models import too_near
from gpuprof.analysis.tuned import time_of, value_of
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


def tied_by_model(cases: Mapping[Key, Measurement]) -> list[Key]:
    """The point of the least modelled time, and those that the model cannot tell from it."""
    models = {key: case.model for key, case in cases.items() if case.outcome == "ok" and case.model}
    order = sorted(models, key=lambda key: models[key].median_us)
    return [key for key in order if too_near(models[order[0]], models[key])]


def tied_by_bound(bounds_us: Mapping[Key, float]) -> list[Key]:
    """The points of the lowest bound, and those that are as low."""
    order = sorted(bounds_us, key=lambda key: bounds_us[key])
    return [key for key in order if bounds_us[key] <= bounds_us[order[0]] * (1 + ALIKE_BOUNDS)]


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
            and (value := value_of(case, tuned.by))
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
