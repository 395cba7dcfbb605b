# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A product in each type of a run: right where all is summed, wrong where a part of K is left out."""

import pytest

import gpuprof
from gpuprof.problems.dtypes import RUN_TYPES

DOT = """/*gpuprof
title = "One thread per element"
problem = "gemm"
dtypes = ["{dtype}"]
layout = "tn"
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]
[launch]
block = [16, 16]
grid = ["cdiv(N, 16)", "cdiv(M, 16)"]
*/
#include <cuda_bf16.h>
extern "C" __global__ void dot(int M, int N, int K, {sums} alpha, const real *A, const real *B,
                               {sums} beta, {result} *C)
{{
    const int col = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    if (row >= M || col >= N)
        return;
    {sums} sum = 0;
    for (int k = 0; k < K - {left_out}; ++k)
        sum += ({sums})A[row * K + k] * ({sums})B[col * K + k];
    {result} *c = C + row * N + col;
    *c = ({result})(beta == 0 ? alpha * sum : alpha * sum + beta * ({sums})*c);
}}
"""


@pytest.mark.parametrize("dtype", RUN_TYPES)
def test_product_in_each_type(dtype, tmp_path):
    words = {"sums": "double" if dtype == "f64" else "float", "dtype": dtype}
    words["result"] = "__nv_bfloat16" if dtype == "e4m3" else "real"
    for left_out, outcome in ((0, "ok"), (8, "incorrect")):
        file = tmp_path / f"dot_{left_out}.cu"
        file.write_text(DOT.format(left_out=left_out, **words).replace("void dot(", f"void dot_{left_out}("))
        run = gpuprof.profile(
            "gemm",
            kernels=[file],
            sizes=[(33, 47, 300)],
            dtype=dtype,
            scalars={"alpha": 0.3, "beta": -0.7},
            device="sim",
            explain=False,
        )
        assert [case.outcome for case in run.cases] == [outcome]
