// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A cuda::barrier for one thread more than ever arrives"
arguments = ["columns", "x", "y"]

[launch]
block = [64]
grid = ["rows"]
*/
// executor: failed
// gpu: timeout
#include <cuda/barrier>

__global__ void bad_barrier_count(int columns, const float *x, float *y)
{
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ float s[64];
    if (threadIdx.x == 0)
        init(&bar, 65);
    __syncthreads();
    float sum = 0;
    for (int i = threadIdx.x; i < columns; i += 64)
        sum += x[blockIdx.x * columns + i];
    s[threadIdx.x] = sum;
    bar.arrive_and_wait(); // <- here
    if (threadIdx.x == 0) {
        for (int i = 1; i < 64; ++i)
            sum += s[i];
        y[blockIdx.x] = sum;
    }
}
