// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// Its headers bring more variables than a driver queues commands, and none of them is named by code.
/*gpuprof
arguments = ["n", "x", "y"]
[launch]
block = [128]
grid = ["cdiv(n, block_x)"]
*/
#include <cooperative_groups.h>
#include <cub/block/block_reduce.cuh>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/semaphore>
#include <cuda/std/chrono>
__device__ int launches;
extern "C" __global__ void headers(int n, real *x, real *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    
    __shared__ real kept[128];
    cooperative_groups::thread_block block = cooperative_groups::this_thread_block();
    kept[threadIdx.x] = i < n ? x[i] : 0;
    cooperative_groups::sync(block);
    if (i < n) y[i] = 2 * kept[127 - (127 - threadIdx.x)];

}
