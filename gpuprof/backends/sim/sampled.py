# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which blocks of a grid run: all of a small one, else a sample; and whether values are worth computing."""

import math
from collections.abc import Iterable, Set
from itertools import product

import numpy as np

from gpuprof.backends.sim.executed import BlocksBuildOnEachOther
from gpuprof.executor import WARP, Sample, choose_blocks
from gpuprof.executor.sampling import Stratum
from gpuprof.kernels.shape import OneLaunch
from gpuprof.problems.problem import ArraySpec, Problem
from gpuprof.text import Extent


def blocks_at_the_ends(launch: OneLaunch) -> Sample:
    """The first, the last and the middle block along each axis, and all combinations: edges come first."""
    axes = [dict.fromkeys((0, extent - 1, extent // 2)) for extent in launch.grid]
    return _listed([(x, y, z) for z, y, x in product(*reversed(axes))])


def blocks_near(launch: OneLaunch, spec: ArraySpec, element: int) -> Sample:
    """The blocks that may write an element, if grid and array lie along each other in any usual way."""
    position = [int(index) for index in np.unravel_index(element, spec.shape)]
    shares = [(index, extent) for index, extent in zip(position, spec.shape, strict=True)]
    shares += [(element, spec.elements), (0, 1)]
    # A grid that is rounded up covers more than the array: its tiles tell better than its share.
    per_axis = [
        dict.fromkeys(
            block
            for index, whole in shares
            for block in (index // -(-whole // blocks), index * blocks // whole)
        )
        for blocks in launch.grid
    ]
    return _listed([(x, y, z) for x, y, z in product(*per_axis)])


def _listed(blocks: list[Extent]) -> Sample:
    """Exactly these blocks; those that are left out are not spoken for."""
    return Sample(
        tuple(Stratum((range(x, x + 1), range(y, y + 1), range(z, z + 1)), 1) for x, y, z in blocks)
    )


#: Largest problem whose whole grid is run: multiply-adds, and elements written.
_FULL_GRID_FMAS = 1 << 25
_FULL_GRID_ELEMENTS = 1 << 23
#: The same of a grid of so few blocks: a sample would be a large part of it.
_FEW_BLOCKS = 512
_FEW_BLOCKS_FMAS = 1 << 27
#: Largest launch that is run whole, in lanes of all warps. A header may ask for 2^31-1 blocks however small
#: the problem is, and running them would take hours. This many, which the narrowest of those problems need
#: where a tile has 32 x 32 threads, take seconds when most threads have nothing to do.
_FULL_GRID_LANES = 1 << 28
#: Blocks run of a larger grid: its kinds (interior, right and bottom edge, corner), the larger ones twice.
_SAMPLED_BLOCKS = 6
#: Seconds that sums of tensor cores may take in a sample, and what those of one operation of a problem take:
#: they are made bit for bit, an instruction at a time, and of wide types it adds half as many.
_SUMS_S, _SUM_S, _WIDE_SUM_S = 2.5, 2e-9, 4e-9
_WIDE = frozenset({"tf32", "f64"})
#: What to say of blocks that wait for each other where nothing else helps.
WAIT = "Its blocks wait for each other, so that the executor would have to run the whole grid."


def sample_of(problem: Problem, one: OneLaunch, blocks: int | None) -> Sample | None:
    """The blocks to run of a launch, as many as the user asks for: 0 for all; None for all of them.

    Raises:
        BlocksBuildOnEachOther: Blocks wait for each other, and are too many to run all.
    """
    if blocks == 0:
        return None
    total, threads = math.prod(one.grid), math.prod(one.block)
    small = (
        problem.flops <= 2 * (_FEW_BLOCKS_FMAS if total <= _FEW_BLOCKS else _FULL_GRID_FMAS)
        and max(spec.elements for spec in problem.arrays) <= _FULL_GRID_ELEMENTS
        and total * -(-threads // WARP) * WARP <= _FULL_GRID_LANES
    )
    if blocks is None and small:
        return None
    if one.cooperative:
        raise BlocksBuildOnEachOther(WAIT)
    wanted = blocks or _SAMPLED_BLOCKS
    return choose_blocks(one.grid, wanted) if wanted < total else None


def are_dear(operations: float, sums: Iterable[Set[str]]) -> bool:
    """Whether computing so many operations of a problem takes many times what counting them does.

    `sums` are the types of matrices that each program of a case multiplies; asked for where it matters.
    """
    if operations * _WIDE_SUM_S <= _SUMS_S:
        return False
    types = frozenset().union(*sums)
    return bool(types) and operations * (_WIDE_SUM_S if types & _WIDE else _SUM_S) > _SUMS_S
