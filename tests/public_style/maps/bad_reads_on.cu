// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Loads a neighbour past the end, and multiplies it by zero"
arguments = ["n", "x", "y"]

[launch]
block = [128]
grid = ["cdiv(n, block_x)"]
*/
// executor: failed: out of bounds
// gpu: any: what lies past the end is memory, and may be a number
__global__ void bad_reads_on(int n, const float *x, float *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const float v = x[i], next = x[i + 1]; // <- here
    y[i] = 1 + v * (2 + v * (3 + v * 4)) + (i < n - 1 ? 0 : 0 * next);
}
