// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Interleaved, without divergence"
operation = "reduce"
rung = 30
study = "F"
aliases = ["reduce1"]
idea = "The same tree, with its additions given to neighbouring threads."
after = "interleaved"
change = "Whole warps are busy or idle, and the remainder is gone: half the instructions. But neighbouring lanes now touch words 2, 4, 8, … apart: shared_load_bank_conflicts rise."
bottleneck = "Bank conflicts: at a distance of 32 words and more all lanes want one bank."
reference = "Study F, reduce1"
dtypes = ["f32", "f64"]

[moves]
shared_load_bank_conflicts = "rises"
barriers = "stays"

[[launches]]
entry = "interleaved_strided"
arguments = ["n", "x", "once"]
block = ["BLOCK"]
grid = ["cdiv(n, BLOCK)"]

[[launches]]
entry = "interleaved_strided"
arguments = ["cdiv(n, BLOCK)", "once", "twice"]
block = ["BLOCK"]
grid = ["cdiv(n, BLOCK * BLOCK)"]

[[launches]]
entry = "interleaved_strided"
arguments = ["cdiv(n, BLOCK * BLOCK)", "twice", "thrice"]
block = ["BLOCK"]
grid = ["cdiv(n, BLOCK * BLOCK * BLOCK)"]

[[launches]]
entry = "interleaved_strided"
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
time_ms = 3.456
note = "4.854 GB/s of 86.4, integers"
*/

extern "C" __global__ void interleaved_strided(int n, const real *in, real *out)
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
        const int left = 2 * s * t;
        if (left < blockDim.x)
            sums[left] += sums[left + s];
        __syncthreads();
    }

    // Write back the block's sum.
    if (t == 0)
        out[blockIdx.x] = sums[0];
}
