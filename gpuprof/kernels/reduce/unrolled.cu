// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Completely unrolled"
operation = "reduce"
rung = 70
study = "F"
aliases = ["reduce5"]
idea = "The compiler knows the block: no loop is left, and no comparison that is always true or never."
after = "unrolled_warp"
change = "The same loads, additions and barriers with fewer instructions around them: barriers and shared_load_wavefronts stay."
bottleneck = "Each block does little: launching it, its barriers and its last warp cost as much as its loads."
reference = "Study F, reduce5"
dtypes = ["f32", "f64"]

[moves]
barriers = "stays"
shared_load_wavefronts = "stays"

[[launches]]
entry = "unrolled"
arguments = ["n", "x", "once"]
block = ["BLOCK"]
grid = ["cdiv(n, 2 * BLOCK)"]

[[launches]]
entry = "unrolled"
arguments = ["cdiv(n, 2 * BLOCK)", "once", "twice"]
block = ["BLOCK"]
grid = ["cdiv(n, 4 * BLOCK * BLOCK)"]

[[launches]]
entry = "unrolled"
arguments = ["cdiv(n, 4 * BLOCK * BLOCK)", "twice", "thrice"]
block = ["BLOCK"]
grid = ["cdiv(n, 8 * BLOCK * BLOCK * BLOCK)"]

[[launches]]
entry = "unrolled"
arguments = ["cdiv(n, 8 * BLOCK * BLOCK * BLOCK)", "thrice", "total"]
block = ["BLOCK"]
grid = ["1"]

[workspace.once]
shape = ["cdiv(n, 2 * BLOCK)"]

[workspace.twice]
shape = ["cdiv(n, 4 * BLOCK * BLOCK)"]

[workspace.thrice]
shape = ["cdiv(n, 8 * BLOCK * BLOCK * BLOCK)"]

[parameters]
BLOCK = 256 # threads per block

[candidates]
BLOCK = [64, 128, 256, 512, 1024]

[[require]]
condition = "BLOCK == 64 or BLOCK == 128 or BLOCK == 256 or BLOCK == 512 or BLOCK == 1024"
because = "{id} halves its block again and again: BLOCK must be a power of two, 64 to 1024"

[[require]]
condition = "n <= 16 * BLOCK * BLOCK * BLOCK * BLOCK"
because = "{id} adds up in four launches, which are too few for this many elements and this BLOCK"

[[published]]
size = "4194304"
time_ms = 0.381
note = "43.996 GB/s of 86.4, integers"
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

extern "C" __global__ void unrolled(int n, const real *in, real *out)
{
    // Coordinates: this thread's two elements, a block apart.
    const int t = threadIdx.x;
    const size_t i = (size_t)blockIdx.x * 2 * BLOCK + t;

    // Load and add; zeros beyond the end.
    __shared__ real sums[BLOCK];
    sums[t] = (i < n ? in[i] : 0) + (i + BLOCK < n ? in[i + BLOCK] : 0);
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
