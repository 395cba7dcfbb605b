// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "One pass, finished by the last block"
operation = "reduce"
rung = 130
idea = "Blocks count themselves as they finish, and the last one adds up all partial sums. The counter is back at zero by then, for the next launch."
after = "atomic_add"
change = "One launch instead of two, with nothing to clear, and the same order of additions every time: the blocks' sums are stored and loaded once, and each block still takes one atomic operation."
bottleneck = "Device-memory bandwidth."
arguments = ["n", "x", "partials", "total"]

[moves]
global_store_requests = "rises"
barriers = "rises"
global_atomic_requests = "stays"

[launch]
block = [256]
any_block = true
grid = ["min(cdiv(n, 4 * LOADS * block_x), BLOCKS_PER_SM * sm_count)"]

[workspace.partials]
shape = ["min(cdiv(n, 4 * LOADS * block_x), BLOCKS_PER_SM * sm_count)"]

[parameters]
LOADS = 4         # 16-byte loads of a thread in flight
BLOCKS_PER_SM = 4 # most blocks for each SM

[candidates]
LOADS = [1, 2, 4, 8]
BLOCKS_PER_SM = [1, 2, 4, 8, 16, 32]
block = [[64], [128], [256], [512], [1024]]

[[require]]
condition = "block_x % 32 == 0 and block_y == 1 and block_z == 1 and BLOCKS_PER_SM >= 1 and LOADS >= 1"
because = "{id} needs a one-dimensional block of whole warps, and BLOCKS_PER_SM and LOADS of at least 1"
*/

#define BLOCK BLOCK_X
#define WARPS (BLOCK / 32)

#include "sum_block.cuh"
#include "sum_own.cuh"

__device__ unsigned arrived; // blocks of this launch that are done; 0 between launches

extern "C" __global__ void __launch_bounds__(BLOCK) last_block(int n, const real *in, real *partials, real *total)
{
    const real sum = sum_block(sum_own(n, in));

    // Store the block's sum, and count: whoever counts last finds everything stored.
    __shared__ bool is_last;
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = sum;
        __threadfence();
        is_last = atomicInc(&arrived, gridDim.x - 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (!is_last)
        return;

    // Write back the sum of all blocks' sums, past the L1 cache, which may hold older ones.
    real rest = 0;
    for (int i = threadIdx.x; i < gridDim.x; i += BLOCK)
        rest += __ldcg(partials + i);
    rest = sum_block(rest);
    if (threadIdx.x == 0)
        *total = rest;
}
