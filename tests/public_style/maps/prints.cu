// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Prints a line a block"
arguments = ["n", "x", "y"]

[launch]
block = [256]
grid = ["cdiv(n, block_x)"]
*/
#include <cstdio>

__global__ void prints(int n, const float *x, float *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0)
        printf("block %d of %u: x[%d] = %.1f%s\n", blockIdx.x, gridDim.x, i, x[i], i ? "" : ", the first");
    if (i < n)
        y[i] = 1 + x[i] * (2 + x[i] * (3 + x[i] * 4));
}
