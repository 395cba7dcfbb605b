// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Warps join by shuffles"
operation = "softmax"
rung = 40
idea = "The lanes of a warp hand each other their values by shuffles; only one value of each warp goes through shared memory."
after = "block_row"
change = "Two barriers a row instead of eighteen, and a few words of shared memory instead of trees: barriers, shared_bytes and shared_store_wavefronts fall. What moves through global memory stays."
bottleneck = "The row is still read three times."
dtypes = ["f32", "f64"]
arguments = ["rows", "columns", "x", "y"]

[moves]
barriers = "falls"
shared_store_wavefronts = "falls"
shared_bytes = "falls"
global_load_sectors = "stays"

[launch]
block = [256]
any_block = true
grid = ["rows"]

[candidates]
block = [[64], [128], [256], [512], [1024]]

[[require]]
condition = "block_x % 32 == 0 and block_y == 1 and block_z == 1"
because = "{id} gives each row to a one-dimensional block of whole warps"
*/

#define WARPS (BLOCK_X / 32)
#define NOTHING __int_as_float(0xff800000) // minus infinity: never the maximum

// The join of a warp's values; every lane gets it.
template <typename Join> static __device__ real join_warp(real value, Join join)
{
#pragma unroll
    for (int lane = 16; lane > 0; lane /= 2)
        value = join(value, __shfl_xor_sync(0xffffffff, value, lane));
    return value;
}

// The join of a block's values; every thread gets it. Each warp joins all warps' values, which saves a barrier.
template <typename Join> static __device__ real join_block(real value, real *shared, Join join)
{
    const int lane = threadIdx.x % 32;
    value = join_warp(value, join);
    if (lane == 0)
        shared[threadIdx.x / 32] = value;
    __syncthreads();
    real joined = shared[0];
#pragma unroll
    for (int warp = 1; warp < WARPS; ++warp)
        joined = join(joined, shared[warp]);
    return joined;
}

extern "C" __global__ void warp_shuffles(int rows, int columns, const real *x, real *y)
{
    // Coordinates: this block's row; a thread takes elements threadIdx.x, threadIdx.x + blockDim.x, …
    const real *in = x + (size_t)blockIdx.x * columns;
    real *out = y + (size_t)blockIdx.x * columns;
    __shared__ real maxima[WARPS];
    __shared__ real sums[WARPS];

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
