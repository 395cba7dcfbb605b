// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "cooperative_groups: a block, its tiles of 32, shfl_down and shfl_xor of a tile"
arguments = ["columns", "x", "y"]

[launch]
block = [128]
grid = ["rows"]
*/
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

template <typename Group>
__device__ float reduce_tile(Group g, float v)
{
    for (int i = g.size() / 2; i > 0; i /= 2)
        v += g.shfl_down(v, i);
    return v;
}

__global__ void cg_tiles(int columns, const float *x, float *y)
{
    cg::thread_block cta = cg::this_thread_block();
    cg::thread_block_tile<32> tile = cg::tiled_partition<32>(cta);
    __shared__ float partial[4];
    float v = 0;
    for (unsigned i = cta.thread_rank(); i < columns; i += cta.size())
        v += x[cta.group_index().x * columns + i];
    v = reduce_tile(tile, v);
    if (tile.thread_rank() == 0)
        partial[tile.meta_group_rank()] = v;
    cg::sync(cta);
    auto four = cg::tiled_partition<4>(tile);
    if (tile.meta_group_rank() == 0 && four.meta_group_rank() == 0) {
        float total = partial[four.thread_rank()];
        total += four.shfl_xor(total, 2);
        total += four.shfl_xor(total, 1);
        if (four.thread_rank() == 0)
            y[blockIdx.x] = total;
    }
}
