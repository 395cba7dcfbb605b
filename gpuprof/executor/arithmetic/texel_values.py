# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a texture makes of texels: numbers of their type, fractions of it, or means of several.

The rules of means are those that reproduce a card's answers (`tests/executor/textures`). Floats are aligned
to the largest exponent of those that weigh anything, and lose what is below the 4th bit after the
significand's last. Their sum is exact, and rounded once to the texels' own type, halves away from zero; each
of two depths is summed by itself. Integers are summed exactly, and rounded to a fraction of 16 bits.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.arithmetic.texel_places import WEIGHT_BITS, Integers
from gpuprof.executor.lanes.masks import Bools
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.texture_units import FRACTION_TYPES, Sampling, Texels

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

    Args:
        values: Each texel's channels, as they lie in memory; shape (..., channels).
        weights: Each texel's weight; they add up to 256. Of eight the second four are of the second depth.
        present: Whether each texel has a weight other than 0 along every axis. If so an infinity counts, even
            where the product is rounded to 0.
        texels: Of which they are; floats, or integers that are read as fractions.
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
    result = _rounded(_added(sums, fraction), significand, least)
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


def _rounded(value: Reals, significand: int, least: int) -> Reals:
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
