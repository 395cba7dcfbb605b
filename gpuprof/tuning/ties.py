# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Who is best everywhere."""

import math
from collections.abc import Mapping

from gpuprof.analysis.tuned import value_of
from gpuprof.kernels.kernel import Kernel
from gpuprof.results import Run
from gpuprof.tuning.space import Point, is_default, point_of


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
