// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "cg::inclusive_scan of tiles, and cg::exclusive_scan of what each tile adds"
arguments = ["columns", "x", "y"]

[launch]
block = [256]
grid = ["rows"]
*/
#include <cooperative_groups.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

__global__ void cg_scans(int columns, const float *x, float *y)
{
    __shared__ float totals[8];
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<32>(block);
    const int i = block.thread_rank();
    const float v = i < columns ? x[blockIdx.x * columns + i] : 0;
    const float sum = cg::inclusive_scan(tile, v, cg::plus<float>());
    if (tile.thread_rank() == 31)
        totals[tile.meta_group_rank()] = sum;
    block.sync();
    if (tile.meta_group_rank() == 0) {
        auto eight = cg::tiled_partition<8>(tile);
        if (eight.meta_group_rank() == 0)
            totals[eight.thread_rank()] = cg::exclusive_scan(eight, totals[eight.thread_rank()]);
    }
    block.sync();
    if (i < columns)
        y[blockIdx.x * columns + i] = totals[tile.meta_group_rank()] + sum;
}
