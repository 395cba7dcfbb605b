// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "cg::memcpy_async and cg::wait, and cg::wait_prior of two copies in flight"
arguments = ["columns", "x", "y"]

[launch]
block = [128]
grid = ["rows"]
dynamic_shared_bytes = "4 * 512"
*/
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

__global__ void cg_memcpy_async(int columns, const float *x, float *y)
{
    extern __shared__ float row[];
    __shared__ float total;
    auto block = cg::this_thread_block();
    const int half = columns / 2;
    if (threadIdx.x == 0)
        total = 0;
    cg::memcpy_async(block, row, x + blockIdx.x * columns, sizeof(float) * half);
    cg::memcpy_async(block, row + half, x + blockIdx.x * columns + half, sizeof(float) * (columns - half));
    cg::wait_prior<1>(block);
    float sum = 0;
    for (int i = threadIdx.x; i < half; i += blockDim.x)
        sum += row[i];
    cg::wait(block);
    for (int i = half + threadIdx.x; i < columns; i += blockDim.x)
        sum += row[i];
    auto tile = cg::tiled_partition<32>(block);
    cg::reduce_update_async(tile, cuda::atomic_ref<float, cuda::thread_scope_block>(total), sum, cg::plus<float>());
    block.sync();
    if (threadIdx.x == 0)
        y[blockIdx.x] = total;
}
