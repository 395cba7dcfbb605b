// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Many loads in flight"
operation = "reduce"
rung = 110
idea = "A thread starts several loads before it adds what the first one brought, and tells the caches to keep nothing: every word is needed once."
after = "float4_loads"
change = "The same loads in batches, each of which holds registers until it arrives: registers_per_thread rise, global_load_requests and global_load_sectors stay."
bottleneck = "Device-memory bandwidth; at small sizes the second launch."

[moves]
registers_per_thread = "rises"
global_load_requests = "stays"
global_load_sectors = "stays"

[[launches]]
entry = "batched_loads"
arguments = ["n", "x", "partials"]
block = ["BLOCK"]
grid = ["min(cdiv(n, 4 * LOADS * BLOCK), BLOCKS_PER_SM * sm_count)"]

[[launches]]
entry = "batched_loads"
arguments = ["min(cdiv(n, 4 * LOADS * BLOCK), BLOCKS_PER_SM * sm_count)", "partials", "total"]
block = ["BLOCK"]
grid = ["1"]

[workspace.partials]
shape = ["min(cdiv(n, 4 * LOADS * BLOCK), BLOCKS_PER_SM * sm_count)"]

[parameters]
BLOCK = 256       # threads per block
LOADS = 4         # 16-byte loads of a thread in flight
BLOCKS_PER_SM = 4 # most blocks in the first launch, for each SM

[candidates]
BLOCK = [64, 128, 256, 512, 1024]
LOADS = [1, 2, 4, 8]
BLOCKS_PER_SM = [1, 2, 4, 8, 16, 32]

[[require]]
condition = "BLOCK >= 32 and BLOCK <= 1024 and BLOCK % 32 == 0 and BLOCKS_PER_SM >= 1 and LOADS >= 1"
because = "{id} needs a BLOCK of whole warps and BLOCKS_PER_SM and LOADS of at least 1"
*/

#define WARPS (BLOCK / 32)

#include "sum_block.cuh"

// The sum of this thread's words of four elements and, in the first block, of the one to three elements behind them.
static __device__ real sum_own(int n, const real *in)
{
    const int t = threadIdx.x;
    const float4 *words = (const float4 *)in;
    const size_t count = n / 4;
    real sum = 0;
    for (size_t first = (size_t)blockIdx.x * LOADS * BLOCK + t; first < count;
         first += (size_t)gridDim.x * LOADS * BLOCK) {
        float4 v[LOADS];
#pragma unroll
        for (int k = 0; k < LOADS; ++k)
            v[k] = first + k * BLOCK < count ? __ldcs(words + first + k * BLOCK) : make_float4(0, 0, 0, 0);
#pragma unroll
        for (int k = 0; k < LOADS; ++k)
            sum += (v[k].x + v[k].y) + (v[k].z + v[k].w);
    }
    if (blockIdx.x == 0 && 4 * count + t < n)
        sum += in[4 * count + t];
    return sum;
}

extern "C" __global__ void __launch_bounds__(BLOCK) batched_loads(int n, const real *in, real *out)
{
    const real sum = sum_block(sum_own(n, in));

    // Write back the block's sum.
    if (threadIdx.x == 0)
        out[blockIdx.x] = sum;
}
