// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Odd-even transposition until a vote finds nothing to do"
arguments = ["columns", "x", "y"]

[launch]
block = [64]
grid = ["rows"]
dynamic_shared_bytes = "4 * columns"
*/
__global__ void odd_even(int columns, const int *x, int *y)
{
    extern __shared__ int s[];
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        s[i] = x[blockIdx.x * columns + i];
    __syncthreads();
    for (bool busy = true; busy;) {
        bool swapped = false;
        for (int odd = 0; odd < 2; ++odd) {
            for (int i = 2 * threadIdx.x + odd; i + 1 < columns; i += 2 * blockDim.x)
                if (s[i] > s[i + 1]) {
                    const int t = s[i];
                    s[i] = s[i + 1], s[i + 1] = t;
                    swapped = true;
                }
            __syncthreads();
        }
        busy = __syncthreads_or(swapped);
    }
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        y[blockIdx.x * columns + i] = s[i];
}
