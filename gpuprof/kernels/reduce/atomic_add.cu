// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "One pass, by atomics"
operation = "reduce"
rung = 120
idea = "Each block adds its sum to the result itself, by an atomic operation; a launch of one thread clears it before."
after = "batched_loads"
change = "No array of partial sums, and nothing but a store before the pass: global_atomic_requests rise. The order of the additions is another one in each launch, and so may be the last digits."
bottleneck = "Device-memory bandwidth; at small sizes the launch that clears."

[moves]
global_atomic_requests = "rises"
global_load_sectors = "stays"

[[launches]]
entry = "clear"
arguments = ["total"]
block = [1]
grid = ["1"]

[[launches]]
entry = "atomic_add"
arguments = ["n", "x", "total"]
block = ["BLOCK"]
grid = ["min(cdiv(n, 4 * LOADS * BLOCK), BLOCKS_PER_SM * sm_count)"]

[parameters]
BLOCK = 256       # threads per block
LOADS = 4         # 16-byte loads of a thread in flight
BLOCKS_PER_SM = 4 # most blocks for each SM

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
#include "sum_own.cuh"

extern "C" __global__ void clear(real *total)
{
    *total = 0;
}

extern "C" __global__ void __launch_bounds__(BLOCK) atomic_add(int n, const real *in, real *total)
{
    const real sum = sum_block(sum_own(n, in));

    // Add the block's sum.
    if (threadIdx.x == 0)
        atomicAdd(total, sum);
}
