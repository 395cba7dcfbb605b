# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Element types: their sizes, their numbers, and rounding to them."""

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuprof.problems.dtypes import (
    ELEMENT_TYPES,
    RUN_TYPES,
    largest,
    numpy_dtype,
    rounded,
    smallest,
)


def _next(value, dtype, end=np.inf):
    """The number after one of a type, in the direction of an end."""
    if dtype != "tf32":
        # e4m3 has no infinity: behind its last number comes NaN.
        end = value.dtype.type(math.copysign(largest(dtype), end) if dtype == "e4m3" else end)
        with np.errstate(over="ignore"):
            return math.nan if value == end else float(np.nextafter(value, end))
    word = int(np.float32(value).view(np.int32))
    if value == 0:
        return math.copysign(2.0**-136, end)
    away = (value > 0) == (end > 0)
    return float(np.int32(word + (2**13 if away else -(2**13))).view(np.float32))


@given(st.floats(allow_nan=False) | st.floats(-4, 4), st.sampled_from(list(RUN_TYPES)))
def test_rounding_is_to_the_nearest(value, dtype):
    kind = numpy_dtype(dtype)
    result = rounded(np.float64(value), dtype)
    assert result.dtype == kind
    near = float(result)
    if not math.isfinite(near):
        step = largest(dtype) * ELEMENT_TYPES[dtype].roundoff
        assert abs(value) >= largest(dtype) + step / 2 * (1 - 2**-20) or math.isinf(value)
        assert math.isnan(near) == (dtype == "e4m3")
        return
    neighbours = [_next(result, dtype, end) for end in (-np.inf, np.inf)]
    assert all(abs(value - near) <= abs(value - other) for other in neighbours if not math.isnan(other))


@pytest.mark.parametrize(
    ("dtype", "half_step"), [("bf16", 2.0**-8), ("f16", 2.0**-11), ("tf32", 2.0**-11), ("e4m3", 2.0**-4)]
)
def test_a_number_just_beyond_a_tie_is_not_rounded_twice(dtype, half_step):
    assert float(rounded(1 + half_step, dtype)) == 1.0
    assert float(rounded(1 + half_step + 2.0**-45, dtype)) == 1 + 2 * half_step
    assert float(rounded(-1 - half_step - 2.0**-45, dtype)) == -1 - 2 * half_step


def test_nan_and_infinity_stay():
    for dtype in RUN_TYPES:
        values = rounded(np.array([np.nan, np.inf, -np.inf]), dtype).astype(np.float64)
        assert np.isnan(values[0])
        assert np.isnan(values[1:]).all() if dtype == "e4m3" else values[1:].tolist() == [np.inf, -np.inf]


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16", "e4m3"])
def test_ranges_are_those_of_the_types(dtype):
    info = ml_dtypes.finfo(numpy_dtype(dtype))
    assert (smallest(dtype), largest(dtype)) == (float(info.smallest_subnormal), float(info.max))


def test_tf32_has_the_exponents_of_f32_and_ten_bits():
    assert (smallest("tf32"), largest("tf32")) == (2.0 ** (-126 - 10), (2 - 2.0**-10) * 2.0**127)
