# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What exact counts say of a point, as numbers for a model: what each part of the device has to do for it.

The highest bound alone tells what a point cannot beat. Points of one bound differ in how much the other parts
have to do beside it, in how requests are cut into sectors and wavefronts, and in how many bytes are under way
at a time: by J. D. C. Little, "A proof for the queuing formula L = λW" (Operations Research 9, 1961), the
bandwidth that a latency allows is the bytes in flight over it.
"""

import math
from collections.abc import Sequence

import numpy as np

from gpuprof.bounds.parts import SECTOR_BYTES, WARP_LANES
from gpuprof.results import Bound
from gpuprof.tuning.built import Built, resident_warps
from gpuprof.tuning.surrogate import Vector

#: Bounds below this share of the usual highest one tell little apart.
_SMALL = 0.05
#: Counts whose ratio says how an access was cut, by what they are divided by.
_RATIOS = (
    ("global_load_sectors", "global_load_requests"),
    ("global_store_sectors", "global_store_requests"),
    ("shared_load_wavefronts", "shared_load_requests"),
    ("shared_store_wavefronts", "shared_store_requests"),
    ("shared_load_bank_conflicts", "shared_load_requests"),
    ("shared_store_bank_conflicts", "shared_store_requests"),
    ("branch_divergent_warps", "barriers"),
)
#: Counts of which each warp's share says how it works.
_OF_WARPS = (
    "warp_instructions",
    "barriers",
    "global_load_requests",
    "global_store_requests",
    "shared_load_requests",
    "shared_store_requests",
    "async_copy_requests",
    "global_atomic_requests",
)
_READS = ("global_load_sectors", "async_copy_sectors")


def work_of(points: Sequence[Built]) -> Vector:
    """A row of logarithms for each point; NaN in the rows of points that were not counted.

    Args:
        points: All of a search.
    """
    counted = [one for one in points if one.bound_us is not None]
    if not counted:
        return np.zeros((len(points), 0))
    parts = list(dict.fromkeys(key for one in counted for key in one.measurement.bounds))
    usual = float(np.median([one.bound_us for one in counted if one.bound_us]))
    rows = [_row(one, parts, _SMALL * usual) if one.bound_us is not None else None for one in points]
    width = len(next(row for row in rows if row is not None))
    return np.array([[math.nan] * width if row is None else row for row in rows])


def _row(one: Built, parts: Sequence[str], small_us: float) -> list[float]:
    bounds = one.measurement.bounds
    counts = {
        name: float(counter.value)
        for name, counter in one.measurement.executor_counters.items()
        if counter.value is not None
    }
    warps = _warps(one)
    row = []
    for part in parts:
        row += [math.log(us + small_us) for us in _both(bounds.get(part))]
    row += [math.log1p(counts.get(name, 0.0) / max(1.0, counts.get(over, 0.0))) for name, over in _RATIOS]
    row += [math.log1p(counts.get(name, 0.0) / warps) for name in _OF_WARPS]
    # What a warp asks for before it waits: all of its loads, or those between two barriers.
    reads = SECTOR_BYTES * sum(counts.get(name, 0.0) for name in _READS)
    waits = max(warps, counts.get("barriers", 0.0))
    in_flight = reads / waits * resident_warps(one)
    return [*row, math.log1p(in_flight), math.log1p(reads / waits)]


def _both(bound: Bound | None) -> tuple[float, float]:
    """The least time that a part needs, and the time where caches absorb nothing."""
    if bound is None:
        return 0.0, 0.0
    return bound.least_us, bound.most_us or bound.least_us


def _warps(one: Built) -> float:
    """Warps of all launches."""
    launches = one.candidate.shape.launches
    return sum(math.prod(each.grid) * math.ceil(math.prod(each.block) / WARP_LANES) for each in launches)
