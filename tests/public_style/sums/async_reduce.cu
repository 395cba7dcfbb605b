// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "cg::reduce_store_async, and red of inline PTX on global memory"

[[launches]]
entry = "clear"
arguments = ["rows", "y"]
block = [32]
grid = ["cdiv(rows, block_x)"]

[[launches]]
entry = "add"
arguments = ["columns", "x", "y"]
block = [64]
grid = ["2", "rows"]
*/
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda/atomic>
namespace cg = cooperative_groups;

__global__ void clear(int rows, float *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows)
        y[i] = 0;
}

__global__ void add(int columns, const float *x, float *y)
{
    __shared__ int of_warp[2];
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    int sum = 0;
    for (int i = blockIdx.x * 64 + threadIdx.x; i < columns; i += 128)
        sum += (int)x[blockIdx.y * columns + i];
    cuda::atomic_ref<int, cuda::thread_scope_block> mine(of_warp[warp.meta_group_rank()]);
    cg::reduce_store_async(warp, mine, sum, cg::plus<int>());
    block.sync();
    if (threadIdx.x == 0) {
        const float both = of_warp[0] + of_warp[1];
        asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;" ::"l"(y + blockIdx.y), "f"(both) : "memory");
    }
}
