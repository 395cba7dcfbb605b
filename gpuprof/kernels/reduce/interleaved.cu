// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Interleaved, with divergence"
operation = "reduce"
rung = 20
study = "F"
aliases = ["reduce0"]
idea = "Each block adds up as many elements as it has threads, in a tree in shared memory: of every two neighbouring sums the left one's thread adds both, then of every four, and so on. The kernel runs again on the blocks' sums until one is left."
change = "The first step of the study: the tree as one would draw it."
bottleneck = "Divergence: a remainder decides who adds, and idle lanes sit between busy ones in every warp."
reference = "Study F, reduce0"
dtypes = ["f32", "f64"]

[[launches]]
entry = "interleaved"
arguments = ["n", "x", "once"]
block = ["BLOCK"]
grid = ["cdiv(n, BLOCK)"]

[[launches]]
entry = "interleaved"
arguments = ["cdiv(n, BLOCK)", "once", "twice"]
block = ["BLOCK"]
grid = ["cdiv(n, BLOCK * BLOCK)"]

[[launches]]
entry = "interleaved"
arguments = ["cdiv(n, BLOCK * BLOCK)", "twice", "thrice"]
block = ["BLOCK"]
grid = ["cdiv(n, BLOCK * BLOCK * BLOCK)"]

[[launches]]
entry = "interleaved"
arguments = ["cdiv(n, BLOCK * BLOCK * BLOCK)", "thrice", "total"]
block = ["BLOCK"]
grid = ["1"]

[workspace.once]
shape = ["cdiv(n, BLOCK)"]

[workspace.twice]
shape = ["cdiv(n, BLOCK * BLOCK)"]

[workspace.thrice]
shape = ["cdiv(n, BLOCK * BLOCK * BLOCK)"]

[parameters]
BLOCK = 256 # threads per block

[candidates]
BLOCK = [64, 128, 256, 512, 1024]

[[require]]
condition = "BLOCK == 64 or BLOCK == 128 or BLOCK == 256 or BLOCK == 512 or BLOCK == 1024"
because = "{id} halves its block again and again: BLOCK must be a power of two, 64 to 1024"

[[require]]
condition = "n <= BLOCK * BLOCK * BLOCK * BLOCK"
because = "{id} adds up in four launches, which are too few for this many elements and this BLOCK"

[[published]]
size = "4194304"
time_ms = 8.054
note = "2.083 GB/s of 86.4, integers"
*/

extern "C" __global__ void interleaved(int n, const real *in, real *out)
{
    // Coordinates: this thread's element.
    const int t = threadIdx.x;
    const size_t i = (size_t)blockIdx.x * blockDim.x + t;

    // Load; zeros beyond the end.
    __shared__ real sums[BLOCK];
    sums[t] = i < n ? in[i] : 0;
    __syncthreads();

    // Add neighbours at a distance of 1, 2, 4, …
    for (int s = 1; s < blockDim.x; s *= 2) {
        if (t % (2 * s) == 0)
            sums[t] += sums[t + s];
        __syncthreads();
    }

    // Write back the block's sum.
    if (t == 0)
        out[blockIdx.x] = sums[0];
}
