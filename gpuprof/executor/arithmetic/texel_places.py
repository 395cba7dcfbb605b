# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""From texture coordinates to texels: which ones lie around a coordinate, how they weigh, what lies outside.

A filter's weights have 8 fractional bits: the coordinate, half a texel less, is rounded to 1/256 of a texel,
halves up; its whole part is the first of two texels, its fraction the weight of the second. Weights of four
and of eight texels are rounded to 8 bits too, so that they add up to 256 again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import Bools
from gpuprof.texture_units import FACES

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Fractional bits of a weight.
WEIGHT_BITS = 8
_ONE = 1 << WEIGHT_BITS
#: Coordinates beyond it are as far out as any; what NumPy makes of a larger one as an integer is nothing.
_FAR = 2.0**40


@dataclass(frozen=True)
class Places:
    """Texels along one axis that a coordinate asks for: one, or two neighbours.

    Attributes:
        index: Of each, as if the texture had no edges.
        weight: Of each, in 1/256; those of two neighbours add up to 256.
    """

    index: tuple[Integers, ...]
    weight: tuple[Integers, ...]


def texel_coordinate(coordinate: Floats, extent: int, mode: str, *, normalized: bool) -> Floats:
    """Return a coordinate in texels; NaN counts as 0, and so does infinity where the texture repeats.

    Where it repeats, whole periods are taken off first: far out only the fraction that float32 keeps counts.
    """
    period = {"wrap": 1, "mirror": 2}.get(mode)
    if normalized and period:
        coordinate = coordinate - period * np.floor(coordinate / period)
    scaled = coordinate * extent if normalized else coordinate
    return np.asarray(np.clip(np.nan_to_num(scaled, nan=0.0, posinf=_FAR, neginf=-_FAR), -_FAR, _FAR))


def nearest(coordinate: Floats) -> Places:
    """Return the texel that a coordinate, in texels, lies in."""
    index = np.floor(coordinate).astype(np.int64)
    return Places((index,), (np.full_like(index, _ONE),))


def neighbours(coordinate: Floats, clamped_to: int | None = None) -> Places:
    """Return the two texels between whose middles a coordinate, in texels, lies.

    Args:
        coordinate: In texels.
        clamped_to: Texels along the axis, where coordinates beyond the middles of the outermost weigh those
            alone.
    """
    place = np.floor((coordinate - 0.5) * _ONE + 0.5).astype(np.int64)
    if clamped_to is not None:
        place = np.clip(place, 0, (clamped_to - 1) * _ONE)
    first, second = place >> WEIGHT_BITS, place & (_ONE - 1)
    return Places((first, first + 1), (_ONE - second, second))


def corners(axes: int) -> Iterator[tuple[int, ...]]:
    """Return which of two neighbours along x, y and z each texel of a mean is, in the order of `shares`.

    Those of one z stand together.
    """
    return (corner[::-1] for corner in product((0, 1), repeat=axes))


def shares(axes: Sequence[Places]) -> list[Integers]:
    """Return the weights of the texels of a mean, in 1/256; they add up to 256.

    Depth is shared out first, then x, then y. Of two neighbours one product is rounded, halves up, and the
    other gets the rest: along x the second, along y the one on the diagonal.
    """
    x, *rest = (axis.weight for axis in axes)
    if not rest:
        return [*x]
    y, *depth = rest
    found = []
    for whole in depth[0] if depth else (_ONE,):
        right = _rounded(x[1] * whole)
        left = whole - right
        near, far = _rounded(left * y[0]), _rounded(right * y[1])
        found += [near, right - far, left - near, far]
    return found


def _rounded(product_of_weights: Integers) -> Integers:
    return (product_of_weights + _ONE // 2) >> WEIGHT_BITS


def within(index: Integers, extent: int, mode: str) -> tuple[Integers, Bools]:
    """Return the texel that stands for an index, and whether there is one; 0 where there is none.

    Args:
        index: As if the texture had no edges.
        extent: Texels along the axis.
        mode: `clamp`, `border`, `wrap` or `mirror`.
    """
    if mode == "wrap":
        return index % extent, np.ones(index.shape, dtype=np.bool_)
    if mode == "mirror":
        turn = index % (2 * extent)
        return np.minimum(turn, 2 * extent - 1 - turn), np.ones(index.shape, dtype=np.bool_)
    inside = (index >= 0) & (index < extent)
    if mode == "border":
        return np.where(inside, index, 0), np.asarray(inside)
    return np.clip(index, 0, extent - 1), np.ones(index.shape, dtype=np.bool_)


def face_of(x: Floats, y: Floats, z: Floats) -> tuple[Integers, Floats, Floats]:
    """Return the face of a cube that a direction from its middle meets, and where, from 0 to 1 on the face.

    Of components of the same size x comes before y, and y before z.
    """
    size = np.abs(x), np.abs(y), np.abs(z)
    by_x = (size[0] >= size[1]) & (size[0] >= size[2])
    by_y = ~by_x & (size[1] >= size[2])
    major = np.where(by_x, x, np.where(by_y, y, z))
    negative = np.signbit(major)
    face = np.where(by_x, 0, np.where(by_y, 2, 4)) + negative
    table_s = (-z, z, x, x, x, -x)
    table_t = (-y, -y, z, -z, -y, -y)
    s, t = (np.select([face == number for number in range(FACES)], table) for table in (table_s, table_t))
    with np.errstate(all="ignore"):
        length = np.abs(major)
        return face.astype(np.int64), (s / length + 1) / 2, (t / length + 1) / 2
