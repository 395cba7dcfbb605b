// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Sums that say that they are there"
operation = "reduce"
rung = 140
idea = "A block's sum and a mark go to memory as one word of 64 bits, which is seen as a whole or not at all. One block reads all words, again and again until each has its mark."
after = "last_block"
change = "Nobody counts, and no store is waited for: there are no atomic operations and no fences, each a way to the L2 cache and back behind the last load."
bottleneck = "Device-memory bandwidth; at small sizes one way to memory, and one from block to block."
arguments = ["n", "x", "total"]

[moves]
global_atomic_requests = "falls"
global_load_sectors = "stays"

[launch]
block = [512]
any_block = true
grid = ["min(cdiv(n, 4 * LOADS * block_x), BLOCKS_PER_SM * sm_count)"]

[parameters]
LOADS = 8         # 16-byte loads of a thread in flight
BLOCKS_PER_SM = 4 # most blocks for each SM

[candidates]
LOADS = [1, 2, 4, 8]
BLOCKS_PER_SM = [1, 2, 4, 8]
block = [[128], [256], [512], [1024]]

[[require]]
condition = "block_x % 32 == 0 and block_y == 1 and block_z == 1 and BLOCKS_PER_SM >= 1 and LOADS >= 1"
because = "{id} needs a one-dimensional block of whole warps, and BLOCKS_PER_SM and LOADS of at least 1"

[[require]]
condition = "sm_count <= 256"
because = "{id} has room for the sums of 256 SMs"
*/

#define BLOCK BLOCK_X
#define WARPS (BLOCK / 32)

#include "sum_block.cuh"
#include "sum_own.cuh"

__device__ uint2 words[256 * BLOCKS_PER_SM]; // a block's sum and its mark; no marks between launches

static __device__ void put(uint2 *word, unsigned mark, float sum)
{
    const unsigned long long both = (unsigned long long)mark << 32 | __float_as_uint(sum);
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(both) : "memory");
}
static __device__ float wait_for(const uint2 *word)
{
    unsigned long long both;
    do
        asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(both) : "l"(word) : "memory");
    while (!(both >> 32));
    return __uint_as_float((unsigned)both);
}

extern "C" __global__ void __launch_bounds__(BLOCK) tagged(int n, const real *in, real *total)
{
    const real sum = sum_block(sum_own(n, in));
    if (threadIdx.x == 0)
        put(words + blockIdx.x, 1, sum);
    if (blockIdx.x != gridDim.x - 1)
        return;

    // Write back the sum of all blocks' sums.
    __syncthreads();
    real rest = 0;
    for (int i = threadIdx.x; i < gridDim.x; i += BLOCK) {
        rest += wait_for(words + i);
        put(words + i, 0, 0); // ready for the next launch
    }
    rest = sum_block(rest);
    if (threadIdx.x == 0)
        *total = rest;
}
