// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Several elements a thread"
operation = "reduce"
rung = 80
study = "F"
aliases = ["reduce6"]
idea = "As many blocks as fill the GPU stay and walk over the whole array, each thread adding in a register; the tree comes once, at the end."
after = "unrolled"
change = "Trees, barriers and blocks become few and do not grow with n any more: grid_blocks, barriers and shared_load_wavefronts fall. Two launches are enough. What is loaded stays."
bottleneck = "Load instructions of four bytes a lane."
reference = "Study F, reduce6"
dtypes = ["f32", "f64"]

[moves]
grid_blocks = "falls"
barriers = "falls"
shared_load_wavefronts = "falls"
global_load_sectors = "stays"

[[launches]]
entry = "grid_stride"
arguments = ["n", "x", "partials"]
block = ["BLOCK"]
grid = ["min(cdiv(n, 2 * BLOCK), BLOCKS_PER_SM * sm_count)"]

[[launches]]
entry = "grid_stride"
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
condition = "(BLOCK == 64 or BLOCK == 128 or BLOCK == 256 or BLOCK == 512 or BLOCK == 1024) and BLOCKS_PER_SM >= 1"
because = "{id} needs a BLOCK that is a power of two, 64 to 1024, and BLOCKS_PER_SM of at least 1"

[[published]]
size = "4194304"
time_ms = 0.268
note = "62.671 GB/s of 86.4, integers"
*/

// Sum of 64 values, by one warp. Its lanes need no barrier of the block; but since they may run apart, each must be told
// to wait until all have read what is about to be overwritten, and until all have written what is about to be read.
static __device__ real sum_last(real *sums, int lane)
{
    real sum = sums[lane] + sums[lane + 32];
#pragma unroll
    for (int s = 16; s > 0; s /= 2) {
        __syncwarp();
        sums[lane] = sum;
        __syncwarp();
        sum += sums[lane + s];
    }
    return sum;
}

extern "C" __global__ void grid_stride(int n, const real *in, real *out)
{
    // Load and add this thread's elements: pairs a block apart, then on by the whole grid.
    const int t = threadIdx.x;
    real own = 0;
    for (size_t i = (size_t)blockIdx.x * 2 * BLOCK + t; i < n; i += (size_t)gridDim.x * 2 * BLOCK)
        own += in[i] + (i + BLOCK < n ? in[i + BLOCK] : 0);
    __shared__ real sums[BLOCK];
    sums[t] = own;
    __syncthreads();

    // Add the upper half to the lower half, down to the last warp.
#pragma unroll
    for (int s = BLOCK / 2; s > 32; s /= 2) {
        if (t < s)
            sums[t] += sums[t + s];
        __syncthreads();
    }
    if (t >= 32)
        return;
    const real sum = sum_last(sums, t);

    // Write back the block's sum.
    if (t == 0)
        out[blockIdx.x] = sum;
}
