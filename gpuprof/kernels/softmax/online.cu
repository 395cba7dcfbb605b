// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Maximum and sum in one pass"
operation = "softmax"
rung = 50
study = "G"
idea = "A running sum is kept for the maximum so far; whenever a larger element comes, the sum is scaled to it. Maximum and sum then need one pass instead of two."
after = "warp_shuffles"
change = "The row is read twice instead of three times, and threads join once instead of twice: global_load_sectors fall by a third and barriers to half."
bottleneck = "Load instructions of four bytes a lane; the second pass waits for the first."
reference = "Study G, the algorithm that gives it its name"
dtypes = ["f32", "f64"]
arguments = ["rows", "columns", "x", "y"]

[moves]
global_load_sectors = "falls"
global_load_requests = "falls"
barriers = "falls"

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
// Below every element, and finite: differences with it are numbers.
#define LOWEST ((real)(sizeof(real) == 4 ? -3.4028234663852886e38 : -1.7976931348623157e308))

// A maximum, and the sum of exponentials relative to it.
struct Normalizer {
    real top;
    real sum;
};

static __device__ __forceinline__ void add(Normalizer &n, real value)
{
    if (value > n.top) {
        n.sum = n.sum * exp(n.top - value) + 1;
        n.top = value;
    } else
        n.sum += exp(value - n.top);
}

static __device__ __forceinline__ Normalizer join(Normalizer a, Normalizer b)
{
    const real top = max(a.top, b.top);
    return {top, a.sum * exp(a.top - top) + b.sum * exp(b.top - top)};
}

// The join of a warp's; every lane gets it.
static __device__ Normalizer join_warp(Normalizer n)
{
#pragma unroll
    for (int lane = 16; lane > 0; lane /= 2)
        n = join(n, {__shfl_xor_sync(0xffffffff, n.top, lane), __shfl_xor_sync(0xffffffff, n.sum, lane)});
    return n;
}

// The join of a block's; every thread gets it. Each warp joins all warps' values, which saves a barrier.
static __device__ Normalizer join_block(Normalizer n, Normalizer *shared)
{
    n = join_warp(n);
    if (threadIdx.x % 32 == 0)
        shared[threadIdx.x / 32] = n;
    __syncthreads();
    Normalizer joined = shared[0];
#pragma unroll
    for (int warp = 1; warp < WARPS; ++warp)
        joined = join(joined, shared[warp]);
    return joined;
}

extern "C" __global__ void online(int rows, int columns, const real *x, real *y)
{
    // Coordinates: this block's row; a thread takes elements threadIdx.x, threadIdx.x + blockDim.x, …
    const real *in = x + (size_t)blockIdx.x * columns;
    real *out = y + (size_t)blockIdx.x * columns;
    __shared__ Normalizer shared[WARPS];

    // Maximum and sum.
    Normalizer n = {LOWEST, 0};
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        add(n, in[i]);
    n = join_block(n, shared);

    // Write back.
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        out[i] = exp(in[i] - n.top) / n.sum;
}
