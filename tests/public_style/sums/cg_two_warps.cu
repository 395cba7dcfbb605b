// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Tiles of 64 threads, by memory of the block"
arguments = ["columns", "x", "y"]

[launch]
block = [128]
grid = ["rows"]
*/
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

__global__ void cg_two_warps(int columns, const float *x, float *y)
{
    __shared__ cg::block_tile_memory<128> scratch;
    __shared__ float halves[2];
    auto block = cg::this_thread_block(scratch);
    auto tile = cg::tiled_partition<64>(block);
    float sum = 0;
    for (int i = block.thread_rank(); i < columns; i += 128)
        sum += x[blockIdx.x * columns + i];
    sum = cg::reduce(tile, sum, cg::plus<float>());
    if (tile.thread_rank() == 0)
        halves[tile.meta_group_rank()] = sum;
    block.sync();
    if (block.thread_rank() == 0)
        y[blockIdx.x] = halves[0] + halves[1];
}
