// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "cg::reduce of a tile, block.sync()"
arguments = ["columns", "x", "y"]

[launch]
block = [128]
grid = ["rows"]
*/
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
using namespace cooperative_groups;

__global__ void cg_reduce(int columns, const float *x, float *y)
{
    thread_block block = this_thread_block();
    auto tile = tiled_partition<32>(block);
    __shared__ float sums[32];
    float mine = 0.f;
    for (int i = block.thread_rank(); i < columns; i += block.num_threads())
        mine += x[blockIdx.x * columns + i];
    const float s = cooperative_groups::reduce(tile, mine, plus<float>());
    if (tile.thread_rank() == 0)
        sums[tile.meta_group_rank()] = s;
    block.sync();
    if (tile.meta_group_rank() == 0) {
        float last = tile.thread_rank() < tile.meta_group_size() ? sums[tile.thread_rank()] : 0.f;
        last = cooperative_groups::reduce(tile, last, plus<float>());
        if (tile.thread_rank() == 0)
            y[blockIdx.x] = last;
    }
}
