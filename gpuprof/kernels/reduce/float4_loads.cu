// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Sixteen bytes a lane"
operation = "reduce"
rung = 100
idea = "Each load brings four neighbouring elements."
after = "shuffles"
change = "A quarter of the load instructions for the same sectors: global_load_requests fall, global_load_sectors stay."
bottleneck = "Bytes in flight: the next loads wait for the loop."

[moves]
global_load_requests = "falls"
global_load_sectors = "stays"

[[launches]]
entry = "float4_loads"
arguments = ["n", "x", "partials"]
block = ["BLOCK"]
grid = ["min(cdiv(n, 4 * BLOCK), BLOCKS_PER_SM * sm_count)"]

[[launches]]
entry = "float4_loads"
arguments = ["min(cdiv(n, 4 * BLOCK), BLOCKS_PER_SM * sm_count)", "partials", "total"]
block = ["BLOCK"]
grid = ["1"]

[workspace.partials]
shape = ["min(cdiv(n, 4 * BLOCK), BLOCKS_PER_SM * sm_count)"]

[parameters]
BLOCK = 256       # threads per block
BLOCKS_PER_SM = 8 # blocks in the first launch, for each SM

[candidates]
BLOCK = [64, 128, 256, 512, 1024]
BLOCKS_PER_SM = [1, 2, 4, 8, 16, 32]

[[require]]
condition = "BLOCK >= 32 and BLOCK <= 1024 and BLOCK % 32 == 0 and BLOCKS_PER_SM >= 1"
because = "{id} needs a BLOCK of whole warps and BLOCKS_PER_SM of at least 1"
*/

#define WARPS (BLOCK / 32)

#include "sum_block.cuh"

extern "C" __global__ void float4_loads(int n, const real *in, real *out)
{
    // Load and add this thread's words of four elements, on by the whole grid.
    const int t = threadIdx.x;
    const float4 *words = (const float4 *)in;
    const size_t count = n / 4;
    real sum = 0;
    for (size_t i = (size_t)blockIdx.x * BLOCK + t; i < count; i += (size_t)gridDim.x * BLOCK) {
        const float4 v = words[i];
        sum += (v.x + v.y) + (v.z + v.w);
    }

    // The last one to three elements.
    if (blockIdx.x == 0 && 4 * count + t < n)
        sum += in[4 * count + t];

    // Write back the block's sum.
    sum = sum_block(sum);
    if (t == 0)
        out[blockIdx.x] = sum;
}
