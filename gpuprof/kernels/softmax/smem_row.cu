// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "The row in shared memory"
operation = "softmax"
rung = 70
idea = "A row is read once and kept in shared memory, first as it is, then as exponentials. With the whole row at hand, a maximum and then a sum cost less than keeping both at once. The caches are told to keep neither what is read nor what is written."
after = "float4_online"
change = "Every element crosses global memory once each way, and one exponential is left of two: global_load_sectors fall to half, for a row of shared memory a block."
bottleneck = "A block's threads wait for its slowest load twice; a long row leaves room for few blocks on an SM."
arguments = ["rows", "columns", "x", "y"]

[moves]
global_load_sectors = "falls"
shared_bytes = "rises"
shared_load_wavefronts = "rises"
shared_store_wavefronts = "rises"
barriers = "rises"

[launch]
block = [256]
any_block = true
grid = ["rows"]
dynamic_shared_bytes = "cdiv(columns, 4) * 16"

[candidates]
block = [[64], [128], [256], [512], [1024]]

[[require]]
condition = "block_x % 32 == 0 and block_y == 1 and block_z == 1"
because = "{id} gives each row to a one-dimensional block of whole warps"

[[require]] # what a block may have, less the little that joining takes
condition = "cdiv(columns, 4) * 16 + 256 <= (232448 if arch == 90 or arch == 100 or arch == 103 else 166912 if arch == 80 or arch == 87 else 101376 if arch >= 86 else 49152)"
because = "{id} keeps a row in shared memory, which is too small for this many columns"
*/

#define WARPS (BLOCK_X / 32)
#define NOTHING __int_as_float(0xff800000) // minus infinity: never the maximum, and its exponential is 0

// Four neighbours in a row, of which the first `count` exist; the others change neither maximum nor sum.
static __device__ __forceinline__ float4 load4(const real *source, int count, bool vector)
{
    if (vector)
        return count > 0 ? __ldcs((const float4 *)source) : make_float4(NOTHING, NOTHING, NOTHING, NOTHING);
    return make_float4(count > 0 ? source[0] : NOTHING, count > 1 ? source[1] : NOTHING,
                       count > 2 ? source[2] : NOTHING, count > 3 ? source[3] : NOTHING);
}

static __device__ __forceinline__ void store4(real *target, float4 value, int count, bool vector)
{
    if (vector) {
        if (count > 0)
            __stcs((float4 *)target, value);
    } else {
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

static __device__ __forceinline__ real top_of(float4 v)
{
    return max(max(v.x, v.y), max(v.z, v.w));
}

static __device__ __forceinline__ real sum_of(float4 v)
{
    return (v.x + v.y) + (v.z + v.w);
}

static __device__ __forceinline__ float4 exponentials(float4 v, real top)
{
    return make_float4(exp(v.x - top), exp(v.y - top), exp(v.z - top), exp(v.w - top));
}

static __device__ __forceinline__ float4 scaled(float4 v, real scale)
{
    return make_float4(v.x * scale, v.y * scale, v.z * scale, v.w * scale);
}

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

extern "C" __global__ void smem_row(int rows, int columns, const real *x, real *y)
{
    // Coordinates: this block's row; a thread takes four elements of every 4 blockDim.x, the same in every pass.
    const real *in = x + (size_t)blockIdx.x * columns;
    real *out = y + (size_t)blockIdx.x * columns;
    extern __shared__ __align__(16) float4 row[];
    __shared__ real maxima[WARPS];
    __shared__ real sums[WARPS];

    // Load, and the maximum. Rows must start at multiples of 16 bytes to be moved so.
    const bool vector = columns % 4 == 0 && ((size_t)x | (size_t)y) % 16 == 0;
    real top = NOTHING;
#pragma unroll 4
    for (int i = threadIdx.x; 4 * i < columns; i += blockDim.x) {
        row[i] = load4(in + 4 * i, columns - 4 * i, vector);
        top = max(top, top_of(row[i]));
    }
    top = join_block(top, maxima, [](real a, real b) { return max(a, b); });

    // The exponentials, and their sum.
    real sum = 0;
    for (int i = threadIdx.x; 4 * i < columns; i += blockDim.x) {
        row[i] = exponentials(row[i], top);
        sum += sum_of(row[i]);
    }
    sum = join_block(sum, sums, [](real a, real b) { return a + b; });

    // Write back.
    const real scale = 1 / sum;
    for (int i = threadIdx.x; 4 * i < columns; i += blockDim.x)
        store4(out + 4 * i, scaled(row[i], scale), columns - 4 * i, vector);
}
