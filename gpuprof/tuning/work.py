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
from gpuprof.counters import PIPES
from gpuprof.results import Bound
from gpuprof.tuning.built import Built, resident_warps
from gpuprof.tuning.surrogate import Vector

#: Bounds below this share of the usual highest one tell little apart.
_SMALL = 0.05
#: Instructions of a pipe below this share of the most that any point has tell little apart.
_FEW = 1e-3
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
    bounds = [_bounds(one, parts, _SMALL * usual) for one in counted]
    known = np.column_stack([bounds, [_accesses(one) for one in counted], _pipes(counted)])
    found = np.full((len(points), known.shape[1]), math.nan)
    found[[one.bound_us is not None for one in points]] = known
    return found


def _bounds(one: Built, parts: Sequence[str], small_us: float) -> list[float]:
    """What each part of the device needs, and what it would need without caches."""
    bounds = one.measurement.bounds
    return [math.log(us + small_us) for part in parts for us in _both(bounds.get(part))]


def _accesses(one: Built) -> list[float]:
    """How a warp's accesses are cut, how many it makes, and how much is under way at a time."""
    counts, warps = counts_of(one), warps_of(one)
    row = [math.log1p(counts.get(name, 0.0) / max(1.0, counts.get(over, 0.0))) for name, over in _RATIOS]
    row += [math.log1p(counts.get(name, 0.0) / warps) for name in _OF_WARPS]
    # What a warp asks for before it waits: all of its loads, or those between two barriers.
    reads = SECTOR_BYTES * sum(counts.get(name, 0.0) for name in _READS)
    waits = max(warps, counts.get("barriers", 0.0))
    return [*row, math.log1p(reads / waits * resident_warps(one)), math.log1p(reads / waits)]


def _pipes(counted: Sequence[Built]) -> Vector:
    """Instructions of each pipe: two kernels of one bound differ in what else their warps do."""
    names = [f"pipe_{pipe}_instructions" for pipe in PIPES]
    counts = np.array([[counts_of(one).get(name, 0.0) for name in names] for one in counted])
    found: Vector = np.log(counts + _FEW * counts.max(axis=0) + 1)
    return found


def counts_of(one: Built) -> dict[str, float]:
    """A point's exact counts that are known."""
    return {
        name: float(counter.value)
        for name, counter in one.measurement.executor_counters.items()
        if counter.value is not None
    }


def _both(bound: Bound | None) -> tuple[float, float]:
    """The least time that a part needs, and the time where caches absorb nothing."""
    if bound is None:
        return 0.0, 0.0
    return bound.least_us, bound.most_us or bound.least_us


def warps_of(one: Built) -> float:
    """Warps of all launches."""
    launches = one.candidate.shape.launches
    return sum(math.prod(each.grid) * math.ceil(math.prod(each.block) / WARP_LANES) for each in launches)
