// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "thread_rank() of a grid and a block of three dimensions"
arguments = ["n", "x", "y"]

[launch]
block = [4, 3, 5]
grid = ["3", "2", "cdiv(n, 360)"]
*/
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__global__ void ranks_3d(int n, const float *x, float *y)
{
    const auto block = cg::this_thread_block();
    const dim3 b = block.group_index(), t = block.thread_index(), g = gridDim;
    const unsigned long long rank = cg::this_grid().thread_rank();
    const unsigned by_hand = ((b.z * g.y + b.y) * g.x + b.x) * 60 + (t.z * 3 + t.y) * 4 + t.x;
    if (rank < n)
        y[rank] = rank == by_hand ? 1 + x[rank] * (2 + x[rank] * (3 + x[rank] * 4)) : 0;
}
