# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""From texture coordinates to texels, and what a texture makes of them.

A filter's weights have 8 fractional bits: the coordinate, half a texel less, is rounded to 1/256 of a texel,
halves up; its whole part is the first of two texels, its fraction the weight of the second. Weights of four
and of eight texels are rounded to 8 bits too, so that they add up to 256 again.

The rules of means are those that reproduce a card's answers (`tests/executor/textures`). Floats are aligned
to the largest exponent of those that weigh anything, and lose what is below the 4th bit after the
significand's last. Their sum is exact, and rounded once to the texels' own type, halves away from zero; each
of two depths is summed by itself. Integers are summed exactly, and rounded to a fraction of 16 bits.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import Bools
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.texture_units import FACES, FRACTION_TYPES, Sampling, Texels

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Fractional bits of a weight.
WEIGHT_BITS = 8
_ONE = 1 << WEIGHT_BITS
#: Coordinates beyond it are as far out as any; what NumPy makes of a larger one as an integer is nothing.
_FAR = 2.0**40


class AxisTexels(Struct, frozen=True):
    """Texels along one axis that a coordinate asks for: one, or two neighbours.

    Indices are as if the texture had no edges; weights, in 1/256, add up to 256.
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


def nearest(coordinate: Floats) -> AxisTexels:
    """Return the texel that a coordinate, in texels, lies in."""
    index = np.floor(coordinate).astype(np.int64)
    return AxisTexels((index,), (np.full_like(index, _ONE),))


def neighbours(coordinate: Floats, clamped_to: int | None = None) -> AxisTexels:
    """Return the two texels between whose middles a coordinate, in texels, lies.

    With `clamped_to` texels along the axis, coordinates beyond the middles of the outermost weigh those
    alone.
    """
    place = np.floor((coordinate - 0.5) * _ONE + 0.5).astype(np.int64)
    if clamped_to is not None:
        place = np.clip(place, 0, (clamped_to - 1) * _ONE)
    first, second = place >> WEIGHT_BITS, place & (_ONE - 1)
    return AxisTexels((first, first + 1), (_ONE - second, second))


def corners(axes: int) -> Iterator[tuple[int, ...]]:
    """Return which of two neighbours along x, y and z each texel of a mean is, in the order of `shares`.

    Those of one z stand together.
    """
    return (corner[::-1] for corner in product((0, 1), repeat=axes))


def shares(axes: Sequence[AxisTexels]) -> list[Integers]:
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
    """Return the texel that stands for an index, and whether there is one; 0 where there is none."""
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


Reals = NDArray[np.float64]

#: How many results every instruction has.
_RESULTS = 4
#: Most texels that are summed at once.
_SQUARE = 4
#: Bits of a texel that a sum keeps below the last of its largest texel.
_GUARD_BITS = 4
#: Bits below those that a sum of two depths keeps of the first and of the second.
_KEPT_OF_DEPTHS = (WEIGHT_BITS, WEIGHT_BITS + 2)
#: By type: fractional bits of the significand, exponent of the least number.
_FLOATS = {"f32": (23, -149), "f16": (10, -24)}
_LEAST_NORMAL = 2.0**-126
#: Less than any exponent.
_NONE = -(1 << 12)


def as_read(values: NDArray[Any], texels: Texels, sampling: Sampling) -> NDArray[Any]:
    """Return texels as they are read: float32, or integers of 32 bits."""
    if sampling.read == "normalized" and texels.dtype in FRACTION_TYPES:
        largest = np.iinfo(values.dtype).max
        return np.maximum(values.astype(np.float64) / largest, -1.0).astype(np.float32)
    if values.dtype.kind == "f":
        return values.astype(np.float32)
    return values.astype(np.int32 if values.dtype.kind == "i" else np.uint32)


def mean(
    values: Sequence[NDArray[Any]], weights: Sequence[Integers], present: Sequence[Bools], texels: Texels
) -> NDArray[np.float32]:
    """Return the mean of the texels around a coordinate.

    Values are each texel's channels, shape (..., channels). Weights add up to 256; of eight the second four
    are of the second depth. `present` says whether a texel has a weight other than 0 along every axis: if so
    an infinity counts, even where the product is rounded to 0.
    """
    wide = [weight[..., None] for weight in weights]
    if texels.dtype in FRACTION_TYPES:
        return _mean_of_fractions(values, wide, texels.dtype)
    significand, least = _FLOATS[texels.dtype]
    found = [value.astype(np.float64) for value in values]
    # What is below the least normal number of float32 is no number to a filter.
    found = [np.where(np.abs(value) < _LEAST_NORMAL, 0.0, value) for value in found]
    finite = [np.where(np.isfinite(value), value, 0.0) for value in found]
    fraction = significand + _GUARD_BITS
    sums = [
        _aligned_sum(finite[start : start + _SQUARE], wide[start : start + _SQUARE], fraction)
        for start in range(0, len(found), _SQUARE)
    ]
    result = _rounded_to_type(_added(sums, fraction), significand, least)
    special: Reals = np.zeros(1)
    for value, here in zip(found, present, strict=True):
        special = special + np.where(here[..., None] & ~np.isfinite(value), value, 0.0)
    return np.asarray(np.where(special == 0, result, special)).astype(np.float32)


def _aligned_sum(
    values: Sequence[Reals], weights: Sequence[Integers], fraction: int
) -> tuple[Reals, Integers]:
    """Return the sum of texels times weights, and the exponent to which they were aligned."""
    weighed = [np.where(weight != 0, value, 0.0) for value, weight in zip(values, weights, strict=True)]
    exponents = [np.where(value != 0, _exponent(value), _NONE) for value in weighed]
    exponent = np.maximum.reduce(np.broadcast_arrays(*exponents))
    last = exponent - fraction
    total = sum(
        np.ldexp(np.trunc(np.ldexp(value, -last)), last) * weight
        for value, weight in zip(weighed, weights, strict=True)
    )
    return np.ldexp(total, -WEIGHT_BITS), exponent


def _added(sums: Sequence[tuple[Reals, Integers]], fraction: int) -> Reals:
    """Return the sum of one or two depths; what the larger exponent leaves no room for is rounded down."""
    if len(sums) == 1:
        return sums[0][0]
    largest = np.maximum(sums[0][1], sums[1][1])
    parts = []
    for (part, _), bits in zip(sums, _KEPT_OF_DEPTHS, strict=True):
        last = largest - fraction - bits
        parts.append(np.ldexp(np.floor(np.ldexp(part, -last)), last))
    return np.asarray(parts[0] + parts[1])


def _rounded_to_type(value: Reals, significand: int, least: int) -> Reals:
    last = np.maximum(_exponent(value) - significand, least)
    return np.ldexp(np.copysign(np.floor(np.abs(np.ldexp(value, -last)) + 0.5), value), last)


def _exponent(value: Reals) -> Integers:
    return np.asarray(np.frexp(value)[1]).astype(np.int64) - 1


def _mean_of_fractions(
    values: Sequence[NDArray[Any]], weights: Sequence[Integers], dtype: str
) -> NDArray[np.float32]:
    """Return the mean of integers as fractions: of 65,535, or of 32,767 where they have a sign."""
    largest = np.iinfo(values[0].dtype).max
    total: Integers = np.asarray(
        sum(
            value.astype(np.int64).clip(-largest) * weight
            for value, weight in zip(values, weights, strict=True)
        )
    )
    half = 1 << WEIGHT_BITS - 1
    if dtype == "i8":
        # From 127 to 32,767 is a factor of 258 and a little: the leading bits come in once more below.
        total = total + ((total + half // 2 + ((total >> 12) << 4)) >> 7)
    else:
        total = ((total * 257 if dtype == "u8" else total) + half) >> WEIGHT_BITS
    return (total / (0xFFFF if dtype.startswith("u") else 0x7FFF)).astype(np.float32)


def with_all_channels(values: NDArray[Any]) -> list[Lanes]:
    """Return four results of 32 bits: channels that a texel lacks are 0."""
    found: list[Lanes] = [
        np.ascontiguousarray(values[..., i]).view(np.uint32) for i in range(values.shape[-1])
    ]
    found += [np.zeros((1, 1, 1), dtype=np.uint32)] * (_RESULTS - len(found))
    return found
