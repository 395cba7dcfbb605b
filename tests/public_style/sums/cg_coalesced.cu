// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "coalesced_threads() on both sides of a branch"
arguments = ["columns", "x", "y"]

[launch]
block = [96]
grid = ["rows"]
*/
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

__global__ void cg_coalesced(int columns, const float *x, float *y)
{
    __shared__ int positive, negative;
    if (threadIdx.x == 0)
        positive = negative = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        const int v = (int)x[blockIdx.x * columns + i];
        if (v > 0) {
            auto active = cg::coalesced_threads();
            const int s = cg::reduce(active, v, cg::plus<int>());
            if (active.thread_rank() == 0)
                atomicAdd(&positive, s);
        } else if (v < 0) {
            auto active = cg::coalesced_threads();
            const int s = cg::reduce(active, -v, cg::plus<int>());
            if (active.thread_rank() == 0)
                atomicAdd(&negative, s);
        }
    }
    __syncthreads();
    if (threadIdx.x == 0)
        y[blockIdx.x] = positive - negative;
}
