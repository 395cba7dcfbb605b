// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "cg::invoke_one and invoke_one_broadcast"
arguments = ["columns", "x", "y"]

[launch]
block = [64]
grid = ["rows"]
*/
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

__global__ void invoke_one(int columns, const float *x, float *y)
{
    __shared__ float partial[2];
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<32>(block);
    float v = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        v += x[blockIdx.x * columns + i];
    v = cg::reduce(tile, v, cg::plus<float>());
    cg::invoke_one(tile, [&] { partial[tile.meta_group_rank()] = v; });
    block.sync();
    if (tile.meta_group_rank() == 1) {
        const float both = cg::invoke_one_broadcast(tile, [&] { return partial[0] + partial[1]; });
        if (tile.thread_rank() == 31)
            y[blockIdx.x] = both;
    }
}
