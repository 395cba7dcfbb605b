// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "grid.sync() between two passes of one cooperative launch"
arguments = ["rows", "columns", "x", "partial", "y"]

[workspace.partial]
shape = ["rows", "4"]

[launch]
block = [64]
grid = ["4", "rows"]
cooperative = true
*/
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

__global__ void grid_sync(int rows, int columns, const float *x, float *partial, float *y)
{
    auto grid = cg::this_grid();
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    __shared__ float of_warp[2];
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < columns; i += gridDim.x * blockDim.x)
        sum += x[blockIdx.y * columns + i];
    sum = cg::reduce(warp, sum, cg::plus<float>());
    if (warp.thread_rank() == 0)
        of_warp[warp.meta_group_rank()] = sum;
    block.sync();
    if (block.thread_rank() == 0)
        partial[blockIdx.y * gridDim.x + blockIdx.x] = of_warp[0] + of_warp[1];
    grid.sync();
    for (unsigned row = grid.thread_rank(); row < rows; row += grid.size()) {
        float total = 0;
        for (int i = 0; i < gridDim.x; ++i)
            total += partial[row * gridDim.x + i];
        y[row] = total;
    }
}
