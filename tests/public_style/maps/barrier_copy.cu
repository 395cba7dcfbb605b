// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "cuda::memcpy_async of an aligned size, completed on a cuda::barrier"
arguments = ["n", "x", "y"]

[launch]
block = [128]
grid = ["cdiv(n, 256)"]
*/
#include <cooperative_groups.h>
#include <cuda/barrier>
#pragma nv_diag_suppress static_var_with_dynamic_init

__global__ void barrier_copy(int n, const float *x, float *y)
{
    constexpr int tile = 256;
    __shared__ alignas(16) float in[tile];
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    auto block = cooperative_groups::this_thread_block();
    if (block.thread_rank() == 0)
        init(&bar, block.size());
    block.sync();
    const int first = blockIdx.x * tile, count = min(tile, n - first);
    if (count == tile)
        cuda::memcpy_async(block, in, x + first, cuda::aligned_size_t<16>(sizeof(in)), bar);
    else
        cuda::memcpy_async(block, in, x + first, sizeof(float) * count, bar);
    bar.arrive_and_wait();
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        const float v = in[i];
        y[first + i] = 1 + v * (2 + v * (3 + v * 4));
    }
}
