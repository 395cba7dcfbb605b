// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Bins spread over the shared memory of a cluster's blocks"
arguments = ["n", "data", "counts"]

[launch]
block = [64]
grid = ["2"]
*/
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__global__ void __cluster_dims__(2) cluster_bins(int n, const int *data, int *counts)
{
    __shared__ int bins[32];
    cg::cluster_group cluster = cg::this_cluster();
    const unsigned rank = cluster.block_rank();
    if (threadIdx.x < 32)
        bins[threadIdx.x] = 0;
    cluster.sync();
    for (int i = cluster.thread_rank(); i < n; i += cluster.num_threads()) {
        int *there = cluster.map_shared_rank(bins, data[i] / 32);
        atomicAdd(there + data[i] % 32, 1);
    }
    cluster.sync();
    if (threadIdx.x < 32)
        counts[32 * rank + threadIdx.x] = bins[threadIdx.x];
}
