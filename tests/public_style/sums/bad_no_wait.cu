// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "cg::memcpy_async without a wait"
arguments = ["columns", "x", "y"]

[launch]
block = [128]
grid = ["rows"]
dynamic_shared_bytes = "4 * 512"
*/
// executor: failed
// gpu: any: the copy may be quick
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;

__global__ void bad_no_wait(int columns, const float *x, float *y)
{
    extern __shared__ float row[];
    __shared__ float total;
    auto block = cg::this_thread_block();
    if (threadIdx.x == 0)
        total = 0;
    cg::memcpy_async(block, row, x + blockIdx.x * columns, sizeof(float) * columns);
    block.sync();
    float sum = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        sum += row[i]; // <- here
    atomicAdd(&total, sum);
    cg::wait(block);
    if (threadIdx.x == 0)
        y[blockIdx.x] = total;
}
