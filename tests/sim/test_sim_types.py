# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels on every element type, whole runs: halves with CUDA's headers, and arrays of their own types."""

import pytest
from cuda_sources import kernel_file, write_kernel_file
from problem_support import measured_file

pytestmark = pytest.mark.deep

#: Two elements a thread; `{two}` is the packed type and `{pair}` makes one of a number.
AXPY_PAIRS = """extern "C" __global__ void axpy(int n, real a, const real *x, real *y)
{{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (2 * i + 1 < n)
        (({two} *)y)[i] = __hfma2({pair}(a), ((const {two} *)x)[i], (({two} *)y)[i]);
    else if (2 * i < n)
        y[2 * i] = __hfma(a, x[2 * i], y[2 * i]);
}}
"""
PAIRS = {"f16": ("__half2", "__half2half2"), "bf16": ("__nv_bfloat162", "__bfloat162bfloat162")}


def measured(folder, name, *change, dtype=None, sizes=""):
    return measured_file(write_kernel_file(folder, name, *change), sizes, dtype)


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
def test_one_source_serves_every_type(tmp_path, dtype):
    case = measured(tmp_path, "axpy", dtype=dtype)
    assert case.outcome == "ok", case.reason
    assert case.verification.max_rel_error > 0


@pytest.mark.parametrize("dtype", PAIRS)
def test_packed_arithmetic(tmp_path, dtype):
    two, pair = PAIRS[dtype]
    whole = kernel_file("axpy")
    code = whole[whole.index('extern "C"') :]
    case = measured(tmp_path, "axpy", code, AXPY_PAIRS.format(two=two, pair=pair), dtype=dtype, sizes="999")
    assert case.outcome == "ok", case.reason


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_sums_in_a_wider_type_are_held_to_its_rounding(tmp_path, dtype):
    case = measured(tmp_path, "stencil", dtype=dtype)
    assert case.outcome == "ok", case.reason
    # Of what is allowed, most is the one rounding to the output's type.
    assert case.verification.bound == 8 * 2.0**-24
    # A kernel that keeps its sums in halves is off by more than that.
    in_halves = (";\n    sum +=", ";\n    sum = float(real(sum));\n    sum +=")
    narrow = measured(tmp_path, "stencil", *in_halves, dtype=dtype)
    assert narrow.outcome == "incorrect"


def test_arrays_of_types_of_their_own(tmp_path):
    case = measured(tmp_path, "quantize")
    assert case.outcome == "ok", case.reason
    assert case.verification.checked_elements == 3 * 700


@pytest.mark.parametrize(
    ("old", "new", "output"),
    [
        ("^ 255;", "^ 127;", "bits"),
        ("(127, __float2int_rn", "(126, __float2int_rn", "q"),
        ("<< 40)", "<< 40) + 2", "kept"),
    ],
)
def test_a_wrong_integer_is_told_in_full(tmp_path, old, new, output):
    case = measured(tmp_path, "quantize", old, new)
    assert case.outcome == "incorrect"
    assert f"{output}[" in case.reason
