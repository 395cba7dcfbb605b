// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Warp shuffles"
operation = "reduce"
rung = 90
idea = "The lanes of a warp add by handing each other their sums in registers; one word of each warp goes through shared memory."
after = "grid_stride"
change = "One barrier a block instead of three, and no tree in shared memory: barriers, shared_load_wavefronts and shared_bytes fall. What is loaded stays."
bottleneck = "Load instructions of four bytes a lane."
dtypes = ["f32", "f64"]

[moves]
barriers = "falls"
shared_load_wavefronts = "falls"
shared_bytes = "falls"
global_load_sectors = "stays"

[[launches]]
entry = "shuffles"
arguments = ["n", "x", "partials"]
block = ["BLOCK"]
grid = ["min(cdiv(n, 2 * BLOCK), BLOCKS_PER_SM * sm_count)"]

[[launches]]
entry = "shuffles"
arguments = ["min(cdiv(n, 2 * BLOCK), BLOCKS_PER_SM * sm_count)", "partials", "total"]
block = ["BLOCK"]
grid = ["1"]

[workspace.partials]
shape = ["min(cdiv(n, 2 * BLOCK), BLOCKS_PER_SM * sm_count)"]

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

// The sum of a block's values; the first thread gets it.
static __device__ real sum_block(real value)
{
    __shared__ real sums[WARPS];
#pragma unroll
    for (int lane = 16; lane > 0; lane /= 2)
        value += __shfl_down_sync(0xffffffff, value, lane);
    if (threadIdx.x % 32 == 0)
        sums[threadIdx.x / 32] = value;
    __syncthreads();
    real sum = 0;
    if (threadIdx.x == 0)
#pragma unroll
        for (int warp = 0; warp < WARPS; ++warp)
            sum += sums[warp];
    return sum;
}

extern "C" __global__ void shuffles(int n, const real *in, real *out)
{
    // Load and add this thread's elements: pairs a block apart, then on by the whole grid.
    const int t = threadIdx.x;
    real sum = 0;
    for (size_t i = (size_t)blockIdx.x * 2 * BLOCK + t; i < n; i += (size_t)gridDim.x * 2 * BLOCK)
        sum += in[i] + (i + BLOCK < n ? in[i + BLOCK] : 0);

    // Write back the block's sum.
    sum = sum_block(sum);
    if (t == 0)
        out[blockIdx.x] = sum;
}
