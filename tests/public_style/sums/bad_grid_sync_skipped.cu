// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Two passes of a cooperative launch without the grid's barrier between"
arguments = ["rows", "columns", "x", "partial", "y"]

[workspace.partial]
shape = ["rows", "4"]

[launch]
block = [64]
grid = ["4", "rows"]
cooperative = true
*/
// executor: failed
// gpu: any: block 0 may be the last
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__global__ void bad_grid_sync_skipped(int rows, int columns, const float *x, float *partial, float *y)
{
    auto grid = cg::this_grid();
    __shared__ float s;
    if (threadIdx.x == 0)
        s = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < columns; i += gridDim.x * blockDim.x)
        atomicAdd(&s, x[blockIdx.y * columns + i]);
    __syncthreads();
    if (threadIdx.x == 0)
        partial[blockIdx.y * gridDim.x + blockIdx.x] = s; // <- here
    cg::sync(cg::this_thread_block());
    for (unsigned row = grid.thread_rank(); row < rows; row += grid.size()) {
        float total = 0;
        for (int i = 0; i < gridDim.x; ++i)
            total += partial[row * gridDim.x + i]; // <- here
        y[row] = total;
    }
}
