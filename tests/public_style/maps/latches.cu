// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "cuda::latch and cuda::binary_semaphore of a block"
arguments = ["n", "x", "y"]

[launch]
block = [64]
grid = ["cdiv(n, block_x)"]
*/
#include <cuda/latch>
#include <cuda/semaphore>

__global__ void latches(int n, const float *x, float *y)
{
    using latch_t = cuda::latch<cuda::thread_scope_block>;
    using semaphore_t = cuda::binary_semaphore<cuda::thread_scope_block>;
    __shared__ alignas(latch_t) unsigned char room_of_latch[sizeof(latch_t)];
    __shared__ alignas(semaphore_t) unsigned char room_of_semaphore[sizeof(semaphore_t)];
    latch_t &ready = *reinterpret_cast<latch_t *>(room_of_latch);
    semaphore_t &once = *reinterpret_cast<semaphore_t *>(room_of_semaphore);
    __shared__ float s[64];
    __shared__ int entered;
    if (threadIdx.x == 0) {
        new (&ready) latch_t(64);
        new (&once) semaphore_t(1);
        entered = 0;
    }
    __syncthreads();
    const int i = blockIdx.x * 64 + threadIdx.x;
    s[63 - threadIdx.x] = i < n ? x[i] : 0;
    if (threadIdx.x % 32 == 0) {
        once.acquire();
        ++entered;
        once.release();
    }
    ready.arrive_and_wait();
    const float v = s[63 - threadIdx.x];
    if (i < n)
        y[i] = 1 + v * (2 + v * (3 + v * 4));
}
