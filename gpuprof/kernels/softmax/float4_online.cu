// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Sixteen bytes a lane"
operation = "softmax"
rung = 60
idea = "Each load and store moves four neighbouring elements, and the sum is scaled once for the four. Rows of other lengths than multiples of four are moved one by one."
after = "online"
change = "A quarter of the load and store instructions for the same sectors, and four times the bytes in flight: global_load_requests and global_store_requests fall."
bottleneck = "The row is read twice; the second time from a cache, if it is still there."
arguments = ["rows", "columns", "x", "y"]

[moves]
global_load_requests = "falls"
global_store_requests = "falls"
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
#define NOTHING __int_as_float(0xff800000) // minus infinity: never the maximum, and its exponential is 0
#define LOWEST -3.4028234663852886e38f // below every element, and finite: differences with it are numbers

// Four neighbours in a row, of which the first `count` exist; the others change neither maximum nor sum.
static __device__ __forceinline__ float4 load4(const real *source, int count, bool vector)
{
    if (vector)
        return *(const float4 *)source;
    return make_float4(count > 0 ? source[0] : NOTHING, count > 1 ? source[1] : NOTHING,
                       count > 2 ? source[2] : NOTHING, count > 3 ? source[3] : NOTHING);
}

static __device__ __forceinline__ void store4(real *target, float4 value, int count, bool vector)
{
    if (vector)
        *(float4 *)target = value;
    else {
        if (count > 0)
            target[0] = value.x;
        if (count > 1)
            target[1] = value.y;
        if (count > 2)
            target[2] = value.z;
        if (count > 3)
            target[3] = value.w;
    }
}

// A maximum, and the sum of exponentials relative to it.
struct Normalizer {
    real top;
    real sum;
};

static __device__ __forceinline__ void add(Normalizer &n, float4 v)
{
    const real top = max(max(v.x, v.y), max(v.z, v.w));
    if (top > n.top) {
        n.sum *= exp(n.top - top);
        n.top = top;
    }
    n.sum += exp(v.x - n.top) + exp(v.y - n.top) + exp(v.z - n.top) + exp(v.w - n.top);
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

extern "C" __global__ void float4_online(int rows, int columns, const real *x, real *y)
{
    // Coordinates: this block's row; a thread takes four elements of every 4 blockDim.x.
    const real *in = x + (size_t)blockIdx.x * columns;
    real *out = y + (size_t)blockIdx.x * columns;
    __shared__ Normalizer shared[WARPS];

    // Maximum and sum. Rows must start at multiples of 16 bytes to be moved so.
    const bool vector = columns % 4 == 0 && ((size_t)x | (size_t)y) % 16 == 0;
    Normalizer n = {LOWEST, 0};
    for (int i = 4 * threadIdx.x; i < columns; i += 4 * blockDim.x)
        add(n, load4(in + i, columns - i, vector));
    n = join_block(n, shared);

    // Write back.
    const real scale = 1 / n.sum;
    for (int i = 4 * threadIdx.x; i < columns; i += 4 * blockDim.x) {
        const float4 v = load4(in + i, columns - i, vector);
        const float4 result = make_float4(exp(v.x - n.top) * scale, exp(v.y - n.top) * scale,
                                          exp(v.z - n.top) * scale, exp(v.w - n.top) * scale);
        store4(out + i, result, columns - i, vector);
    }
}
