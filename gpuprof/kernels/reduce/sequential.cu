// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Sequential addressing"
operation = "reduce"
rung = 40
study = "F"
aliases = ["reduce2"]
idea = "The upper half of the sums is added to the lower half, until one is left."
after = "interleaved_strided"
change = "Neighbouring lanes touch neighbouring words at every level: shared_load_bank_conflicts fall to none."
bottleneck = "Half of the threads load one element and never add."
reference = "Study F, reduce2"
dtypes = ["f32", "f64"]

[moves]
shared_load_bank_conflicts = "falls"
shared_load_wavefronts = "falls"
barriers = "stays"

[[launches]]
entry = "sequential"
arguments = ["n", "x", "once"]
block = ["BLOCK"]
grid = ["cdiv(n, BLOCK)"]

[[launches]]
entry = "sequential"
arguments = ["cdiv(n, BLOCK)", "once", "twice"]
block = ["BLOCK"]
grid = ["cdiv(n, BLOCK * BLOCK)"]

[[launches]]
entry = "sequential"
arguments = ["cdiv(n, BLOCK * BLOCK)", "twice", "thrice"]
block = ["BLOCK"]
grid = ["cdiv(n, BLOCK * BLOCK * BLOCK)"]

[[launches]]
entry = "sequential"
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
time_ms = 1.722
note = "9.741 GB/s of 86.4, integers"
*/

extern "C" __global__ void sequential(int n, const real *in, real *out)
{
    // Coordinates: this thread's element.
    const int t = threadIdx.x;
    const size_t i = (size_t)blockIdx.x * blockDim.x + t;

    // Load; zeros beyond the end.
    __shared__ real sums[BLOCK];
    sums[t] = i < n ? in[i] : 0;
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
