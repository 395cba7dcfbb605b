// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// A square and itself.
/*gpuprof
operation = "sums"
dimensions = ["n"]
arguments = ["y", "x", "n"]
[arrays]
x = { shape = ["n"] }
y = { shape = ["n"], role = "out" }
[work]
bytes = "8 * n"
[check]
y = { value = "x * x + x", relative = "4 * u", absolute = "4 * u" }
[launch]
block = [64]
grid = ["cdiv(n, block_x)"]
*/
extern "C" __global__ void sums(float *y, const float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] * x[i] + x[i];
}
