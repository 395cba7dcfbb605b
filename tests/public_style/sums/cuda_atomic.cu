// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "cuda::atomic of block scope in shared memory, by compare and exchange too"
arguments = ["columns", "x", "y"]

[launch]
block = [64]
grid = ["rows"]
*/
#include <cuda/atomic>

__global__ void cuda_atomic(int columns, const float *x, float *y)
{
    __shared__ cuda::atomic<int, cuda::thread_scope_block> most, rest;
    if (threadIdx.x == 0) {
        new (&most) cuda::atomic<int, cuda::thread_scope_block>(0);
        new (&rest) cuda::atomic<int, cuda::thread_scope_block>(0);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        const int v = (int)x[blockIdx.x * columns + i];
        if (v % 8) {
            most.fetch_add(v);
        } else {
            int seen = rest.load(cuda::std::memory_order_relaxed);
            while (!rest.compare_exchange_weak(seen, seen + v, cuda::std::memory_order_acq_rel))
                ;
        }
    }
    __syncthreads();
    if (threadIdx.x == 0)
        y[blockIdx.x] = most.load() + rest.load();
}
