// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "cuda::barrier: arrive_and_wait, and arrive apart from wait"
arguments = ["columns", "x", "y"]

[launch]
block = [128]
grid = ["rows"]
*/
#include <cuda/barrier>
#include <cuda/std/utility>
#include <cooperative_groups.h>

__global__ void barrier(int columns, const float *x, float *y)
{
    using barrier_t = cuda::barrier<cuda::thread_scope_block>;
    __shared__ barrier_t bar;
    __shared__ float partial[128];
    auto block = cooperative_groups::this_thread_block();
    if (block.thread_rank() == 0)
        init(&bar, block.size());
    block.sync();
    float sum = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        sum += x[blockIdx.x * columns + i];
    partial[threadIdx.x] = sum;
    for (int half = 64; half > 0; half /= 2) {
        bar.arrive_and_wait();
        if (threadIdx.x < half)
            partial[threadIdx.x] += partial[threadIdx.x + half];
    }
    barrier_t::arrival_token token = bar.arrive();
    const int last = gridDim.x - 1 - blockIdx.x; // work that needs none of it
    bar.wait(cuda::std::move(token));
    if (threadIdx.x == 32)
        y[gridDim.x - 1 - last] = partial[0];
}
