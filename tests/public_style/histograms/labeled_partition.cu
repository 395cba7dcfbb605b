// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "cg::labeled_partition and binary_partition"
arguments = ["n", "data", "counts"]

[launch]
block = [64]
grid = ["1"]
*/
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

__global__ void labeled_partition(int n, const int *data, int *counts)
{
    __shared__ int bins[64];
    auto block = cg::this_thread_block();
    bins[block.thread_rank()] = 0;
    block.sync();
    for (int i = block.thread_rank(); i < n; i += block.num_threads()) {
        auto active = cg::coalesced_threads();
        auto group = cg::labeled_partition(active, data[i]);
        const int sum = cg::reduce(group, 1, cg::plus<int>());
        if (group.thread_rank() == 0)
            atomicAdd(&bins[data[i]], sum);
    }
    block.sync();
    auto tile = cg::tiled_partition<32>(block);
    auto even = cg::binary_partition(tile, block.thread_rank() % 2 == 0);
    const int highest = cg::reduce(even, bins[block.thread_rank()], cg::greater<int>());
    if (bins[block.thread_rank()] <= highest)
        counts[block.thread_rank()] = bins[block.thread_rank()];
}
