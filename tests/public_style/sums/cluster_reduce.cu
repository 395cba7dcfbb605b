// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A cluster's blocks add up through distributed shared memory"
arguments = ["columns", "x", "y"]

[launch]
block = [64]
grid = ["4", "rows"]
*/
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__global__ void __cluster_dims__(4, 1, 1) cluster_reduce(int columns, const float *x, float *y)
{
    __shared__ float sum;
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x == 0)
        sum = 0;
    cluster.sync();
    float mine = 0;
    for (int i = cluster.thread_rank(); i < columns; i += cluster.num_threads())
        mine += x[blockIdx.y * columns + i];
    float *target = cluster.map_shared_rank(&sum, 0);
    atomicAdd(target, mine);
    cluster.sync();
    if (cluster.block_rank() == 0 && threadIdx.x == 0)
        y[blockIdx.y] = sum;
}
