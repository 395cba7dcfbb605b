// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "The guard is missing: the last block writes past the end"
arguments = ["n", "x", "y"]

[launch]
block = [128]
grid = ["cdiv(n, block_x)"]
*/
// executor: failed: out of bounds
// gpu: incorrect: past the end of y
__global__ void bad_no_guard(int n, const float *x, float *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float v = x[min(i, n - 1)];
    y[i] = 1 + v * (2 + v * (3 + v * 4)); // <- here
}
