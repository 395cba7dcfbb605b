// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// Twice each element, in whatever order.
/*gpuprof
operation = "doubled"
dimensions = ["n"]
arguments = ["x", "y", "n"]
[arrays]
x = { shape = ["n"] }
y = { shape = ["n"], role = "out" }
[work]
bytes = "8 * n"
[check]
y = { value = "2 * x", equal = true, unordered = true }
[launch]
block = [64]
grid = ["cdiv(n, block_x)"]
*/
extern "C" __global__ void doubled(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[n - 1 - i] = FACTOR * x[i];
}