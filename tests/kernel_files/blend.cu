// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// Keeps a part of what is there, and nothing by default.
/*gpuprof
operation = "blend"
dimensions = ["n"]
default_sizes = "500"
arguments = ["n", "keep", "x", "y"]
dtypes = ["f32", "f16"]
[scalars]
keep = { default = 0 }
[arrays]
x = { shape = ["n"] }
y = { shape = ["n"], role = "inout", read_if = "keep > 0", unread = "nothing is kept" }
[work]
bytes = "2 * n * real_bytes"
[check]
y = { value = "x + keep * y", relative = "2 * u" }
[launch]
block = [128]
grid = ["cdiv(n, block_x)"]
*/
extern "C" __global__ void blend(int n, real keep, const real *x, real *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] + keep * y[i];
}
