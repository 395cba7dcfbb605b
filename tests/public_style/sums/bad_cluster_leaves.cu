// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A block of a cluster ends while another still reads its shared memory"
arguments = ["columns", "x", "y"]

[launch]
block = [64]
grid = ["2", "rows"]
*/
// executor: failed
// gpu: any: the memory may still be there
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__global__ void __cluster_dims__(2, 1, 1) bad_cluster_leaves(int columns, const float *x, float *y)
{
    __shared__ float s;
    auto cluster = cg::this_cluster();
    if (threadIdx.x == 0)
        s = 0;
    __syncthreads();
    for (int i = cluster.thread_rank(); i < columns; i += cluster.num_threads())
        atomicAdd(&s, x[blockIdx.y * columns + i]);
    cluster.sync();
    if (cluster.block_rank() == 0 && threadIdx.x == 0)
        y[blockIdx.y] = s + *cluster.map_shared_rank(&s, 1); // <- here
}
