// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "cuda::atomic_ref of the output, after a launch that clears it"

[[launches]]
entry = "clear"
arguments = ["rows", "y"]
block = [64]
grid = ["cdiv(rows, block_x)"]

[[launches]]
entry = "add"
arguments = ["columns", "x", "y"]
block = [128]
grid = ["cdiv(columns, block_x)", "rows"]
*/
#include <cuda/atomic>

__global__ void clear(int n, float *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = 0;
}

__global__ void add(int columns, const float *x, float *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= columns)
        return;
    cuda::atomic_ref<float, cuda::thread_scope_device> total(y[blockIdx.y]);
    total.fetch_add(x[blockIdx.y * columns + i], cuda::memory_order_relaxed);
}
