# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels on every element type, whole runs: halves with CUDA's headers, and arrays of their own types."""

import pytest
from problem_support import measured_file

pytestmark = pytest.mark.deep

AXPY = """/*gpuprof
title = "axpy"
operation = "axpy"
dimensions = ["n"]
default_sizes = "1000"
arguments = ["n", "a", "x", "y"]
dtypes = ["f16", "bf16", "f32", "f64"]
[arrays]
x = { shape = ["n"] }
y = { shape = ["n"], role = "inout" }
[scalars]
a = { default = 2.7 }
[work]
flops = "2 * n"
bytes = "3 * n * real_bytes"
[check]
y = { value = "a * x + y", relative = "2 * u", magnitude = "abs(a * x) + abs(y)" }
[launch]
block = [256]
grid = ["cdiv(n, block_x)"]
*/
extern "C" __global__ void axpy(int n, real a, const real *x, real *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}
"""
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
STENCIL = """/*gpuprof
title = "Five points"
operation = "stencil"
dimensions = ["rows", "columns"]
default_sizes = "37x70"
arguments = ["rows", "columns", "x", "out"]
dtypes = ["f16", "bf16"]
[arrays]
x = { shape = ["rows", "columns"] }
out = { shape = ["rows", "columns"], role = "out" }
[work]
bytes = "2 * rows * columns * real_bytes"
[check.out]
value = "(4 * x + roll(x, 1, 0) + roll(x, -1, 0) + roll(x, 1, 1) + roll(x, -1, 1)) / 8"
magnitude = "(4 * abs(x) + 4) / 8"
accumulate = "f32"
relative = "8 * u"
[launch]
block = [32, 8]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
__device__ float at(const real *x, int rows, int columns, int row, int column)
{
    return float(x[(row + rows) % rows * columns + (column + columns) % columns]);
}

extern "C" __global__ void stencil(int rows, int columns, const real *x, real *out)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns)
        return;
    float sum = 4 * at(x, rows, columns, row, column);
    sum += at(x, rows, columns, row - 1, column) + at(x, rows, columns, row + 1, column);
    sum += at(x, rows, columns, row, column - 1) + at(x, rows, columns, row, column + 1);
    out[row * columns + column] = real(sum / 8);
}
"""
QUANTIZE = """/*gpuprof
title = "Quantised, with the sum of what was kept"
operation = "quantize"
dimensions = ["n"]
default_sizes = "700"
arguments = ["n", "x", "wide", "offset", "q", "bits", "kept"]
[arrays]
x = { shape = ["n"] }
wide = { shape = ["n"], dtype = "bf16" }
offset = { shape = ["n"], dtype = "u16" }
q = { shape = ["n"], dtype = "i8", role = "out" }
bits = { shape = ["n"], dtype = "u8", role = "out" }
kept = { shape = ["n"], dtype = "i64", role = "out" }
[inputs]
x = "normal(0, 50)"
offset = "integers(0, 65536)"
[work]
bytes = "4 * n"
[check]
q = "clip(rint(x), -128, 127)"
bits = "offset % 256 ^ 255"
kept = { value = "offset * 2 ** 40 + (wide > 0)" }
[launch]
block = [128]
grid = ["cdiv(n, block_x)"]
*/
#include <cuda_bf16.h>

extern "C" __global__ void quantize(int n, const float *x, const __nv_bfloat16 *wide,
                                    const unsigned short *offset, signed char *q, unsigned char *bits,
                                    long long *kept)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    q[i] = max(-128, min(127, __float2int_rn(x[i])));
    bits[i] = offset[i] ^ 255;
    kept[i] = ((long long)offset[i] << 40) + (__bfloat162float(wide[i]) > 0);
}
"""


def measured(tmp_path, source, dtype=None, sizes=""):
    path = tmp_path / f"{source.split('operation = ')[1].split(chr(34))[1]}.cu"
    path.write_text(source)
    return measured_file(path, sizes, dtype)


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
def test_one_source_serves_every_type(tmp_path, dtype):
    case = measured(tmp_path, AXPY, dtype=dtype)
    assert case.outcome == "ok", case.reason
    assert case.verification.max_rel_error > 0


@pytest.mark.parametrize("dtype", PAIRS)
def test_packed_arithmetic(tmp_path, dtype):
    two, pair = PAIRS[dtype]
    code = AXPY[AXPY.index('extern "C"') :]
    case = measured(
        tmp_path, AXPY.replace(code, AXPY_PAIRS.format(two=two, pair=pair)), dtype=dtype, sizes="999"
    )
    assert case.outcome == "ok", case.reason


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_sums_in_a_wider_type_are_held_to_its_rounding(tmp_path, dtype):
    case = measured(tmp_path, STENCIL, dtype=dtype)
    assert case.outcome == "ok", case.reason
    # Of what is allowed, most is the one rounding to the output's type.
    assert case.verification.bound == 8 * 2.0**-24
    # A kernel that keeps its sums in halves is off by more than that.
    in_halves = STENCIL.replace(";\n    sum +=", ";\n    sum = float(real(sum));\n    sum +=")
    narrow = measured(tmp_path, in_halves, dtype=dtype)
    assert narrow.outcome == "incorrect"


def test_arrays_of_types_of_their_own(tmp_path):
    case = measured(tmp_path, QUANTIZE)
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
    assert old in QUANTIZE
    case = measured(tmp_path, QUANTIZE.replace(old, new))
    assert case.outcome == "incorrect"
    assert f"{output}[" in case.reason
