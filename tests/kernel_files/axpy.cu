// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
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
