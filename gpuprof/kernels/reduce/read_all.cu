// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Read everything"
operation = "reduce"
rung = 10
idea = "Every thread reads its share with many loads in flight and adds it up in a register, and nobody joins the sums: what any kernel needs that reads every element once."
change = "No sum of all: the ceiling of the ladder. Its result is the first element."
bottleneck = "Device-memory bandwidth."
result = "read"
arguments = ["n", "x", "total"]

[launch]
block = [256]
any_block = true
grid = ["min(cdiv(n, 4 * LOADS * block_x), BLOCKS_PER_SM * sm_count)"]

[parameters]
LOADS = 8            # 16-byte loads of a thread in flight
BLOCKS_PER_SM = 4096 # most blocks for each SM: so many that each reads once, which was fastest

[candidates]
LOADS = [1, 2, 4, 8, 16]
BLOCKS_PER_SM = [8, 16, 32, 4096]
block = [[64], [128], [256], [512], [1024]]

[[require]]
condition = "block_y == 1 and block_z == 1 and BLOCKS_PER_SM >= 1 and LOADS >= 1"
because = "{id} needs a one-dimensional block, and BLOCKS_PER_SM and LOADS of at least 1"
*/

#define BLOCK BLOCK_X

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

extern "C" __global__ void __launch_bounds__(BLOCK) read_all(int n, const real *in, real *total)
{
    const real sum = sum_own(n, in);

    // No sum here is NaN, but the compiler does not know, and must have everything loaded.
    if (sum != sum)
        *total = sum;
    if (blockIdx.x == 0 && threadIdx.x == 0)
        *total = in[0];
}
