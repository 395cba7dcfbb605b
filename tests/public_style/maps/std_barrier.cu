// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "cuda::barrier with a completion function, and arrive_and_drop"
arguments = ["n", "x", "y"]

[launch]
block = [96]
grid = ["cdiv(n, 64)"]
*/
#include <cuda/barrier>
#include <cuda/std/utility>

struct Count {
    int *turns;
    __device__ void operator()() noexcept { ++*turns; }
};

__global__ void std_barrier(int n, const float *x, float *y)
{
    __shared__ int turns;
    using barrier_t = cuda::barrier<cuda::thread_scope_block, Count>;
    __shared__ alignas(barrier_t) unsigned char room[sizeof(barrier_t)];
    __shared__ float s[64];
    auto &bar = *reinterpret_cast<barrier_t *>(room);
    if (threadIdx.x == 0) {
        turns = 0;
        new (&bar) barrier_t(96, Count{&turns});
    }
    __syncthreads();
    const int i = blockIdx.x * 64 + threadIdx.x;
    if (threadIdx.x >= 64) {
        bar.arrive_and_drop();
        return;
    }
    s[threadIdx.x ^ 32] = i < n ? x[i] : 0;
    bar.arrive_and_wait();
    const float v = s[threadIdx.x ^ 32];
    bar.arrive_and_wait();
    if (i < n)
        y[i] = turns == 2 ? 1 + v * (2 + v * (3 + v * 4)) : -1;
}
