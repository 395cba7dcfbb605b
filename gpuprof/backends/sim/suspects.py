# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which blocks to run of a grid that is too large to run whole, when one of them is known to go wrong."""

from itertools import product

import numpy as np

from gpuprof.executor import Sample
from gpuprof.executor.sampling import Stratum
from gpuprof.kernels.shape import OneLaunch
from gpuprof.problems.problem import ArraySpec
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
