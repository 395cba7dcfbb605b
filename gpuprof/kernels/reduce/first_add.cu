// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "First addition while loading"
operation = "reduce"
rung = 50
study = "F"
aliases = ["reduce3"]
idea = "Each thread loads two elements and adds them before anything goes to shared memory."
after = "sequential"
change = "Half as many blocks for the same loads: grid_blocks, barriers and shared_load_wavefronts fall to half."
bottleneck = "Instructions that are no loads and no additions: loop, compare, barrier."
reference = "Study F, reduce3"
dtypes = ["f32", "f64"]

[moves]
grid_blocks = "falls"
barriers = "falls"
shared_load_wavefronts = "falls"
global_load_sectors = "stays"

[[launches]]
entry = "first_add"
arguments = ["n", "x", "once"]
block = ["BLOCK"]
grid = ["cdiv(n, 2 * BLOCK)"]

[[launches]]
entry = "first_add"
arguments = ["cdiv(n, 2 * BLOCK)", "once", "twice"]
block = ["BLOCK"]
grid = ["cdiv(n, 4 * BLOCK * BLOCK)"]

[[launches]]
entry = "first_add"
arguments = ["cdiv(n, 4 * BLOCK * BLOCK)", "twice", "thrice"]
block = ["BLOCK"]
grid = ["cdiv(n, 8 * BLOCK * BLOCK * BLOCK)"]

[[launches]]
entry = "first_add"
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
time_ms = 0.965
note = "17.377 GB/s of 86.4, integers"
*/

extern "C" __global__ void first_add(int n, const real *in, real *out)
{
    // Coordinates: this thread's two elements, a block apart.
    const int t = threadIdx.x;
    const size_t i = (size_t)blockIdx.x * 2 * blockDim.x + t;

    // Load and add; zeros beyond the end.
    __shared__ real sums[BLOCK];
    sums[t] = (i < n ? in[i] : 0) + (i + blockDim.x < n ? in[i + blockDim.x] : 0);
    __syncthreads();

    // Add the upper half to the lower half.
    for (int s = blockDim.x / 2; s > 0; s /= 2) {
        if (t < s)
            sums[t] += sums[t + s];
        __syncthreads();
    }

    // Write back the block's sum.
    if (t == 0)
        out[blockIdx.x] = sums[0];
}
