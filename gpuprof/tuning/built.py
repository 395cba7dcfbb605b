# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A point of a search that was compiled, with what is known of it before it is timed."""

import math
from dataclasses import dataclass

from gpuprof.results import Measurement
from gpuprof.tuning.space import Candidate


@dataclass(frozen=True, slots=True)
class Built:
    """A candidate that was compiled and fits on the device.

    Args:
        candidate: The candidate.
        measurement: Its resources, and its bounds once it was counted.
    """

    candidate: Candidate
    measurement: Measurement

    @property
    def bound_us(self) -> float | None:
        """The least time that exact counts allow; None where it was not counted."""
        bounds, by = self.measurement.bounds, self.measurement.bound_by
        return bounds[by].least_us if by else None


def resident_warps(one: Built) -> float:
    """Resident warps of an SM."""
    assert one.measurement.occupancy is not None
    threads = math.prod(one.candidate.shape.largest.block)
    return max(1.0, one.measurement.occupancy.blocks_per_sm * math.ceil(threads / 32))
