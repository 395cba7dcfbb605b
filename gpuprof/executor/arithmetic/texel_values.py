# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a texture makes of texels: numbers of their type, fractions of it, or means of several.

A mean is the sum of the texels, each times the product of its weights along the axes, rounded once to
float32.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.arithmetic.texel_places import WEIGHT_BITS, Integers
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.texture_units import FRACTION_TYPES, Sampling, Texels

#: How many results every instruction has.
_RESULTS = 4


def as_read(values: NDArray[Any], texels: Texels, sampling: Sampling) -> NDArray[Any]:
    """Return texels as they are read: float32, or integers of 32 bits."""
    if sampling.read == "normalized" and texels.dtype in FRACTION_TYPES:
        largest = np.iinfo(values.dtype).max
        return np.maximum(values.astype(np.float64) / largest, -1.0).astype(np.float32)
    if values.dtype.kind == "f":
        return values.astype(np.float32)
    return values.astype(np.int32 if values.dtype.kind == "i" else np.uint32)


def filtered(values: Sequence[NDArray[Any]], weights: Sequence[Integers], axes: int) -> NDArray[np.float32]:
    """Return the mean of the texels around a coordinate.

    Args:
        values: Each texel's channels.
        weights: Each texel's weight, whose sum is 256 to the power of `axes`.
        axes: Along how many axes there are two.
    """
    total = sum(
        value.astype(np.float64) * weight[..., None] for value, weight in zip(values, weights, strict=True)
    )
    return np.asarray(np.ldexp(total, -WEIGHT_BITS * axes)).astype(np.float32)


def with_all_channels(values: NDArray[Any], *, floats: bool) -> list[Lanes]:
    """Return four results of 32 bits: channels that a texel lacks are 0, and the last one 1."""
    one = np.float32(1).view(np.uint32) if floats else np.uint32(1)
    found: list[Lanes] = [
        np.ascontiguousarray(values[..., i]).view(np.uint32) for i in range(values.shape[-1])
    ]
    for i in range(len(found), _RESULTS):
        found.append(np.full((1, 1, 1), one if i == _RESULTS - 1 else 0, dtype=np.uint32))
    return found
