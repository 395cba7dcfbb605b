# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Addresses of a batch as sums of two parts: how far each block is, and how its lanes lie from there.

Loops move the first part on, of which there is one a block, and leave the second one the object that it is.
"""

from typing import Self

import numpy as np
from msgspec import Struct

from gpuprof.executor.lanes.masks import Mask
from gpuprof.executor.lanes.scalars import Lanes


class Spread(Struct, frozen=True, eq=False):
    """What each lane of a batch holds: shapes (blocks or 1, 1, 1) and (blocks or 1, warps or 1, 32 or 1)."""

    moving: Lanes
    pattern: Lanes

    @classmethod
    def of(cls, value: Lanes) -> Self:
        """Return a value in parts, one of which is nothing: the same object for equal kinds of it."""
        nothing = _NOTHING[value.dtype.itemsize]
        return cls(value, nothing) if value.shape[1:] == (1, 1) else cls(nothing, value)

    @property
    def whole(self) -> Lanes:
        return self.moving + self.pattern

    def plus(self, other: Self) -> Self:
        """Return the sums of what lanes hold here and there."""
        patterns = [each.pattern for each in (self, other) if each.pattern.size > 1]
        pattern = sum(patterns[1:], patterns[0]) if patterns else self.pattern
        return type(self)(self.moving + other.moving, pattern)

    def where(self, mask: Mask, before: Self) -> Self:
        """Return this for the lanes in a mask, for others what was there before."""
        lanes = mask.lanes
        if self.pattern is before.pattern and lanes.shape[1:] == (1, 1):
            return type(self)(np.where(lanes, self.moving, before.moving), self.pattern)
        return self.of(np.where(lanes, self.whole, before.whole))


#: By the bytes of a number.
_NOTHING = {size: np.zeros((1, 1, 1), dtype=f"i{size}") for size in (4, 8)}
