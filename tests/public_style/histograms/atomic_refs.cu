// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "cuda::atomic_ref of block scope on shared memory, of device scope on global, cuda::std::atomic too"

[[launches]]
entry = "clear"
arguments = ["counts"]
block = [64]
grid = ["1"]

[[launches]]
entry = "count"
arguments = ["n", "data", "counts"]
block = [128]
grid = ["2"]
*/
#include <cuda/atomic>
#include <cuda/std/atomic>

__global__ void clear(int *counts)
{
    cuda::atomic_ref<int, cuda::thread_scope_device>(counts[threadIdx.x]).store(0, cuda::memory_order_relaxed);
}

__device__ cuda::std::atomic<int> calls{0};

__global__ void count(int n, const int *data, int *counts)
{
    __shared__ int bins[64];
    if (threadIdx.x < 64)
        bins[threadIdx.x] = 0;
    if (threadIdx.x == 0)
        calls.fetch_add(1, cuda::std::memory_order_relaxed);
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        cuda::atomic_ref<int, cuda::thread_scope_block> bin(bins[data[i]]);
        bin.fetch_add(1, cuda::memory_order_relaxed);
    }
    __syncthreads();
    if (threadIdx.x < 64) {
        cuda::atomic_ref<int, cuda::thread_scope_device> total(counts[threadIdx.x]);
        total += bins[threadIdx.x];
    }
}
