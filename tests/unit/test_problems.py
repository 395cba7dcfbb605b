# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The references against plain loops, work models, element types, and what the error bound lets through."""

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problem_support import Gemm, Transpose

from gpuprof.problems.dtypes import (
    ELEMENT_TYPES,
    RUN_TYPES,
    largest,
    numpy_dtype,
    rounded,
    smallest,
)
from gpuprof.problems.references import Pointer


def _reference(problem, inputs):
    """The expected values and magnitudes of the one output."""
    (expected,) = problem.reference(inputs).values()
    return expected.values, expected.magnitude


def _relative(problem):
    """The error allowed in the one output, as a share of the magnitude."""
    (output,) = problem.outputs
    return problem.bound(output.name).relative


def test_gemm_inputs_have_both_signs_so_that_a_lost_sign_shows():
    values = Gemm(64, 64, 64).inputs(0)["A"]
    assert 0.4 < (values < 0).mean() < 0.6


def _worst(problem, result, inputs):
    expected, magnitude = _reference(problem, inputs)
    return (np.abs(result.astype(np.float64) - expected) / magnitude).max()


def _float32_product(problem, inputs):
    m, n, k = problem.sizes
    a = inputs["A"].reshape(m, k)
    b = inputs["B"].reshape(k, n)
    return (np.float32(problem.scalars["alpha"]) * (a @ b)).ravel()


sizes = st.integers(1, 150)


@given(sizes, sizes, st.integers(1, 2000), st.integers(0, 2**32))
def test_float32_product_passes(m, n, k, seed):
    problem = Gemm(m, n, k)
    inputs = problem.inputs(seed)
    assert _worst(problem, _float32_product(problem, inputs), inputs) <= _relative(problem)


def test_float32_sum_in_order_passes():
    """The order of a kernel with one accumulator, the least exact of them."""
    problem = Gemm(64, 64, 4096)
    inputs = problem.inputs(5)
    a, b = inputs["A"].reshape(64, 4096), inputs["B"].reshape(4096, 64)
    total = np.zeros((64, 64), np.float32)
    for k in range(4096):
        total += a[:, k, None] * b[k]
    assert _worst(problem, total.ravel(), inputs) <= _relative(problem)


@given(st.integers(8, 64), st.integers(8, 64), st.integers(2, 1000), st.integers(0, 2**32))
def test_dropped_term_fails(m, n, k, seed):
    problem = Gemm(m, n, k)
    inputs = problem.inputs(seed)
    short = {"A": inputs["A"].copy()}
    short["A"].reshape(m, k)[:, -1] = 0
    assert _worst(problem, _float32_product(problem, {**inputs, **short}), inputs) > _relative(problem)


@pytest.mark.parametrize("k", [1, 16, 128])
def test_tensor_float_inputs_fail(k):
    """TF32 keeps 10 bits of each factor's mantissa: too few for a kernel that claims float32."""
    problem = Gemm(128, 128, k)
    inputs = problem.inputs(0)
    cut = {name: (values.view(np.uint32) & 0xFFFFE000).view(np.float32) for name, values in inputs.items()}
    assert _worst(problem, _float32_product(problem, cut), inputs) > _relative(problem)


def test_scalars_are_rounded_to_the_element_type_as_the_kernel_gets_them():
    problem = Gemm(4, 4, 4, alpha=0.1)
    inputs = problem.inputs(0)
    product, _ = _reference(Gemm(4, 4, 4), inputs)
    expected, _ = _reference(problem, inputs)
    assert np.array_equal(expected, float(np.float32(0.1)) * product)


def test_old_content_is_never_read_without_beta():
    inputs = Gemm(4, 4, 4).inputs(0)
    expected, magnitude = _reference(Gemm(4, 4, 4), {**inputs, "C": np.full(16, np.nan, np.float32)})
    assert np.isfinite(expected).all()
    assert np.isfinite(magnitude).all()


@pytest.mark.parametrize(
    ("problem", "flops", "min_bytes"),
    [
        (Gemm(4096, 4096, 4096), 137_438_953_472, 3 * 4096 * 4096 * 4),
        (Gemm(2, 3, 5), 60, 4 * (10 + 15 + 6)),
        (Gemm(2, 3, 5, "f64"), 60, 8 * (10 + 15 + 6)),
        (Gemm(2, 3, 5, "tf32"), 60, 4 * (10 + 15 + 6)),
        (Gemm(2, 3, 5, "e4m3", beta=1.0), 60, 10 + 15 + 2 * 2 * 6),
        (Gemm(2, 3, 5, beta=1.0), 60, 4 * (10 + 15 + 2 * 6)),
        (Transpose(2048, 1024), 0, 2 * 2048 * 1024 * 4),
        (Transpose(3, 5, "f64", "copy"), 0, 2 * 15 * 8),
    ],
)
def test_work_model(problem, flops, min_bytes):
    assert problem.flops == flops
    assert problem.min_bytes == min_bytes


@pytest.mark.parametrize(
    "problem",
    [
        Gemm(5, 3, 2, beta=0.5),
        Gemm(5, 3, 2, layout="col"),
        Gemm(5, 3, 2, "bf16"),
        Gemm(5, 3, 2, "e4m3", "tn"),
        Transpose(5, 3),
    ],
)
def test_library_and_device_reference_name_arrays_that_the_problem_has(problem):
    names = {spec.name for spec in problem.arrays}
    (output,) = (spec.name for spec in problem.outputs)
    names |= {f"{word} {output}" for word in ("expected", "magnitude", "initial")}
    calls = [
        problem.library_call(one.id)
        for one in problem.operation.references
        if not one.on_host and one.computes_in(problem.dtype)
    ]
    for arguments in (problem.device_reference().arguments, *(call.arguments for call in calls)):
        used = {argument.array for argument in arguments if isinstance(argument, Pointer)}
        assert used <= names
        assert output in {name.rpartition(" ")[2] for name in used}


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
