# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What measured runs found best at each size on each device: searches, and runs of several kernels too."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpuprof.devices.device import Device
from gpuprof.kernels.kernel import Kernel
from gpuprof.results import Measurement, Run
from gpuprof.tuning.size_search import CLOSE
from gpuprof.tuning.space import Point, point_of
from gpuprof.tuning.ties import tied_by_bound, tied_by_time, value_of


@dataclass(frozen=True, slots=True)
class Finding:
    """What is best at one size on one device, with all that cannot be told apart from it."""

    device: Device
    sizes: Mapping[str, int]
    best: tuple[Point, ...]
    timed: bool


def findings_of(run: Run, kernels: Mapping[str, Kernel]) -> list[Finding]:
    """What a run found best among some kernels; the ties of a search are taken as they stand."""
    if run.tuning is not None:
        return [
            Finding(
                run.devices[tuned.device],
                tuned.problem.sizes,
                tuple(point_of(tied, kernels[tied.kernel]) for tied in tuned.ties if tied.kernel in kernels),
                tuned.by == "time",
            )
            for tuned in run.tuning.sizes
            if any(tied.kernel in kernels for tied in tuned.ties)
        ]
    found = []
    for (number, sizes), held in _by_size(run, kernels).items():
        timed = run.backend == "gpu"
        values = _values(held, timed=timed)
        if not values:
            continue
        least = min(values.values())
        near = [point for point, value in values.items() if value <= least * (1 + CLOSE)]
        best = (
            tied_by_time({point: held[point] for point in near})
            if timed
            else tied_by_bound({point: values[point] for point in near})
        )
        found.append(Finding(run.devices[number], dict(sizes), tuple(best), timed))
    return found


def fastest_first(runs: Sequence[Run], kernels: Mapping[str, Kernel]) -> list[Point]:
    """All points that runs measured well: first what lacks the fewest sizes and is nearest to the best."""
    distances: dict[Point, list[float]] = {}
    for run in runs:
        timed = run.backend == "gpu"
        for held in _by_size(run, kernels).values():
            values = _values(held, timed=timed)
            for point, value in values.items():
                distances.setdefault(point, []).append(math.log(value / min(values.values())))
    return sorted(
        distances, key=lambda point: (-len(distances[point]), sum(distances[point]) / len(distances[point]))
    )


def _values(held: Mapping[Point, Measurement], *, timed: bool) -> dict[Point, float]:
    """The figure of each point that has one."""
    return {point: value for point, case in held.items() if (value := value_of(case, timed=timed))}


_Size = tuple[int, tuple[tuple[str, int], ...]]


def _by_size(run: Run, kernels: Mapping[str, Kernel]) -> dict[_Size, dict[Point, Measurement]]:
    """Cases of some kernels, by device and size, then by what they are of."""
    found: dict[_Size, dict[Point, Measurement]] = {}
    for case in run.cases:
        kernel = kernels.get(case.kernel)
        if kernel is None or kernel.choices or case.is_reference:
            continue
        if case.problem.operation == kernel.operation:
            place = case.device, tuple(case.problem.sizes.items())
            found.setdefault(place, {})[point_of(case, kernel)] = case
    return found
