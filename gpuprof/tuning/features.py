# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a model sees of a point before it runs: its values, its launch, and what the compiler made of it."""

import math
from collections.abc import Sequence

import numpy as np

from gpuprof.devices.device import Device
from gpuprof.tuning.built import Built, resident_warps
from gpuprof.tuning.estimate import estimated_us
from gpuprof.tuning.search import scaled
from gpuprof.tuning.surrogate import Vector, completed
from gpuprof.tuning.work import work_of

#: Values of a parameter that span this factor are told apart by their logarithm.
_WIDE = 3.0


def features_of(points: Sequence[Built], device: Device) -> Vector:
    """A row of numbers for each point: what is known of it before it runs.

    Args:
        points: All of a search.
        device: What they run on.
    """
    columns = [_column(points, name) for name in _names(points)]
    kernels = list(dict.fromkeys(one.candidate.point.kernel for one in points))
    if len(kernels) > 1:
        columns += [[float(one.candidate.point.kernel == kernel) for one in points] for kernel in kernels]
    launches = [_of_launch(one, device) for one in points]
    columns += map(list, zip(*launches, strict=True))
    return np.array(columns, dtype=np.float64).T.reshape(len(points), -1)


def with_work(points: Sequence[Built], features: Vector) -> Vector:
    """Features, and what exact counts say of each point, where some were counted.

    Args:
        points: All of a search.
        features: As of `features_of`.
    """
    return np.column_stack([features, completed(scaled(features), work_of(points))])


def sketch(points: Sequence[Built], device: Device) -> Vector:
    """A first guess of each point's time from its launch alone, as a logarithm: how evenly SMs are busy."""
    return np.array([_imbalance(one, device) for one in points])


def bounded(points: Sequence[Built], features: Vector, guess: Vector) -> Vector:
    """The logarithm of every point's bound: exact where it was counted, else as the counted ones suggest.

    Args:
        points: All of a search.
        features: As of `features_of`.
        guess: What is thought of each without counts, as a logarithm.
    """
    return _carried_on([one.bound_us for one in points], features, guess)


def estimated(points: Sequence[Built], device: Device, features: Vector, guess: Vector) -> Vector:
    """The logarithm of what every point may take, by its own counts or as those of the counted ones suggest.

    Args:
        points: All of a search.
        device: What they run on.
        features: As of `features_of`.
        guess: What is thought of each without counts, as a logarithm.
    """
    return _carried_on([estimated_us(one, device) for one in points], features, guess)


def _carried_on(times_us: Sequence[float | None], features: Vector, guess: Vector) -> Vector:
    """Logarithms of times, also of points that have none."""
    known = np.array([math.nan if us is None else math.log(us) for us in times_us])
    if np.isnan(known).all():
        return guess
    found: Vector = completed(scaled(features), known[:, None])[:, 0]
    return found


def _names(points: Sequence[Built]) -> list[str]:
    return list(dict.fromkeys(name for one in points for name, _ in one.candidate.point.params))


def _column(points: Sequence[Built], name: str) -> list[float]:
    """A parameter of all points; 0 for a kernel that lacks it."""
    values = [dict(one.candidate.point.params).get(name) for one in points]
    had = [value for value in values if value is not None]
    wide = min(had) > 0 and max(had) >= _WIDE * min(had)
    return [0.0 if value is None else math.log2(value) if wide else float(value) for value in values]


def _of_launch(one: Built, device: Device) -> tuple[float, ...]:
    launch, case = one.candidate.shape.largest, one.measurement
    resources, occupancy = case.resources, case.occupancy
    assert resources is not None
    assert occupancy is not None
    return (
        *(math.log2(extent) for extent in launch.block),
        math.log2(math.prod(launch.block)),
        math.log2(math.prod(launch.grid)),
        resources.registers_per_thread / 32,
        math.log2(1 + resources.shared_bytes / 1024),
        math.log2(1 + resources.spill_bytes),
        math.log2(occupancy.blocks_per_sm),
        math.log2(resident_warps(one)),
        _imbalance(one, device),
        _waves(one, device),
    )


def _imbalance(one: Built, device: Device) -> float:
    """Logarithm of what the busiest SM has to do over the mean."""
    blocks = math.prod(one.candidate.shape.largest.grid)
    return math.log(math.ceil(blocks / device.sm_count) * device.sm_count / blocks)


def _waves(one: Built, device: Device) -> float:
    """Logarithm of whole waves of blocks over what there is to do."""
    assert one.measurement.occupancy is not None
    blocks = math.prod(one.candidate.shape.largest.grid)
    slots = device.sm_count * max(1, one.measurement.occupancy.blocks_per_sm)
    return math.log(math.ceil(blocks / slots) * slots / blocks)
