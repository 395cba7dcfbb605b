// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A block a row"
operation = "softmax"
rung = 30
idea = "The threads of a block share a row: each takes every so many elements, and a tree in shared memory joins their maxima, then their sums."
after = "three_passes"
change = "Neighbouring lanes read neighbouring elements: load and store efficiency rise to 100 %, sectors fall to an eighth, and there are as many blocks as rows. The price is shared memory, and a barrier for each level of the trees."
bottleneck = "The same bytes are read three times, if from a cache; between the passes the block waits at the trees' barriers."
dtypes = ["f32", "f64"]
arguments = ["rows", "columns", "x", "y"]

[moves]
global_load_efficiency_pct = "rises"
global_store_efficiency_pct = "rises"
global_load_sectors = "falls"
grid_blocks = "rises"
barriers = "rises"
shared_load_wavefronts = "rises"

[launch]
block = [256]
any_block = true
grid = ["rows"]

[candidates]
block = [[64], [128], [256], [512], [1024]]

[[require]]
condition = "block_y == 1 and block_z == 1"
because = "{id} gives each row to a one-dimensional block"
*/

#define NOTHING __int_as_float(0xff800000) // minus infinity: never the maximum

// The join of all threads' values, by a tree in shared memory; every thread gets it.
template <typename Join> static __device__ real join_block(real value, real *shared, Join join)
{
    const int t = threadIdx.x;
    shared[t] = value;
    __syncthreads();
    for (int width = blockDim.x; width > 1;) {
        const int half = (width + 1) / 2;
        if (t + half < width)
            shared[t] = join(shared[t], shared[t + half]);
        __syncthreads();
        width = half;
    }
    return shared[0];
}

extern "C" __global__ void block_row(int rows, int columns, const real *x, real *y)
{
    // Coordinates: this block's row; a thread takes elements threadIdx.x, threadIdx.x + blockDim.x, …
    const real *in = x + (size_t)blockIdx.x * columns;
    real *out = y + (size_t)blockIdx.x * columns;
    __shared__ real maxima[BLOCK_X];
    __shared__ real sums[BLOCK_X];

    // The maximum.
    real top = NOTHING;
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        top = max(top, in[i]);
    top = join_block(top, maxima, [](real a, real b) { return max(a, b); });

    // The sum.
    real sum = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        sum += exp(in[i] - top);
    sum = join_block(sum, sums, [](real a, real b) { return a + b; });

    // Write back.
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        out[i] = exp(in[i] - top) / sum;
}
