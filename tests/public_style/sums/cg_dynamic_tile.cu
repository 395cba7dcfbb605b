// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A thread_group whose size is known at run time only, over shared memory"
arguments = ["columns", "x", "y"]

[launch]
block = [128]
grid = ["rows"]
dynamic_shared_bytes = "4 * threads"
*/
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__device__ int reduce_sum(cg::thread_group g, int *temp, int val)
{
    int lane = g.thread_rank();
    for (int i = g.size() / 2; i > 0; i /= 2) {
        temp[lane] = val;
        g.sync();
        if (lane < i)
            val += temp[lane + i];
        g.sync();
    }
    return val;
}

__global__ void cg_dynamic_tile(int columns, const float *x, float *y)
{
    extern __shared__ int temp[];
    __shared__ int total;
    auto block = cg::this_thread_block();
    if (block.thread_rank() == 0)
        total = 0;
    block.sync();
    const int tile_size = columns > 100 ? 16 : 8;
    cg::thread_group tile = cg::tiled_partition(block, tile_size);
    int sum = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        sum += (int)x[blockIdx.x * columns + i];
    const int first = block.thread_rank() / tile_size * tile_size;
    sum = reduce_sum(tile, temp + first, sum);
    if (tile.thread_rank() == 0)
        atomicAdd(&total, sum);
    block.sync();
    if (block.thread_rank() == 0)
        y[blockIdx.x] = total;
}
