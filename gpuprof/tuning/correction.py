# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What each point of a search may take: a guess, corrected by those that are known.

The correction is linear in what is known of a point before it runs: its values, its launch, and what the
compiler made of it. A. E. Hoerl and R. W. Kennard, "Ridge regression: biased estimation for nonorthogonal
problems" (Technometrics 12, 1970).
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gpuprof.bounds.parts import WARP_LANES
from gpuprof.devices.device import Device
from gpuprof.tuning.space import BuiltPoint

Vector = NDArray[np.float64]

#: Values of a parameter that span this factor are told apart by their logarithm.
_WIDE = 3.0
#: Penalty of the regression for each feature.
_RIDGE = 0.1


def corrected(features: Vector, guesses: Vector, times_us: Sequence[float | None]) -> Vector:
    """Logarithms of what every point takes: of a known one its own, of the others the corrected guess.

    Guesses are logarithms up to a constant, all alike where nothing is known; an unknown time is None.
    """
    known = np.flatnonzero([bool(us) for us in times_us])
    if not len(known):
        return guesses
    values = np.log([us for us in times_us if us])
    off, some = values - guesses[known], features[known]
    middle = some.mean(axis=0)
    some = some - middle
    penalty = _RIDGE * features.shape[1] * np.eye(features.shape[1])
    slopes = np.linalg.solve(some.T @ some + penalty, some.T @ (off - off.mean()))
    found: Vector = guesses + off.mean() + (features - middle) @ slopes
    found[known] = values
    return found


def features_of(points: Sequence[BuiltPoint], device: Device) -> Vector:
    """A row of numbers for each point of a search; columns have mean 0 and deviation 1."""
    columns = [_column(points, name) for name in _names(points)]
    kernels = list(dict.fromkeys(one.candidate.point.kernel for one in points))
    columns += [[float(one.candidate.point.kernel == kernel) for one in points] for kernel in kernels]
    columns += map(list, zip(*(_of_launch(one, device) for one in points), strict=True))
    rows = np.array(columns, dtype=np.float64).T.reshape(len(points), -1)
    # Columns in which all points are alike tell nothing.
    rows = rows[:, np.ptp(rows, axis=0) > 0] if len(points) else rows
    found: Vector = (rows - rows.mean(axis=0)) / rows.std(axis=0) if rows.size else rows
    return found


def _names(points: Sequence[BuiltPoint]) -> list[str]:
    return list(dict.fromkeys(name for one in points for name, _ in one.candidate.point.params))


def _column(points: Sequence[BuiltPoint], name: str) -> list[float]:
    """A parameter of all points; 0 for a kernel that lacks it."""
    values = [dict(one.candidate.point.params).get(name) for one in points]
    had = [value for value in values if value is not None]
    wide = min(had) > 0 and max(had) >= _WIDE * min(had)
    return [0.0 if value is None else math.log2(value) if wide else float(value) for value in values]


def _of_launch(one: BuiltPoint, device: Device) -> tuple[float, ...]:
    launch, case = one.candidate.configured.largest, one.measurement
    resources, occupancy = case.resources, case.occupancy
    assert resources is not None
    assert occupancy is not None
    threads, blocks = math.prod(launch.block), math.prod(launch.grid)
    resident = max(1, occupancy.blocks_per_sm)
    return (
        *(math.log2(extent) for extent in launch.block),
        math.log2(threads),
        math.log2(blocks),
        resources.registers_per_thread / 32,
        math.log2(1 + resources.shared_bytes / 1024),
        math.log2(1 + (resources.spill_bytes or 0)),
        math.log2(resident),
        math.log2(resident * math.ceil(threads / WARP_LANES)),
        _unevenness(blocks, device.sm_count),
        _unevenness(blocks, device.sm_count * resident),
    )


def _unevenness(blocks: int, slots: int) -> float:
    """Logarithm of what the busiest slot has to do over the mean."""
    return math.log(math.ceil(blocks / slots) * slots / blocks)
