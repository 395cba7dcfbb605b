// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// Two functions of one module: the first leaves what the second needs in a variable of the module.
/*gpuprof
title = "Scaled by its first element"
operation = "scaled"
dimensions = ["n"]
default_sizes = "256"
[arrays]
x = { shape = ["n"] }
y = { shape = ["n"], role = "out" }
[work]
bytes = "2 * n * real_bytes"
[check]
y = { value = "x * x[0]", relative = "2 * u" }

[[launches]]
entry = "take_first"
arguments = ["x"]
block = [1]
grid = ["1"]

[[launches]]
entry = "scale"
arguments = ["n", "x", "y"]
block = [64]
grid = ["cdiv(n, block_x)"]
*/
__device__ real first;

extern "C" __global__ void take_first(const real *x)
{
    first = x[0];
}

extern "C" __global__ void scale(int n, const real *x, real *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = first * x[i];
}
