// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "The row in registers"
operation = "softmax"
rung = 80
idea = "Each thread keeps its share of the row in registers, from the load to the store: all its loads are in flight before the first is needed."
after = "smem_row"
change = "Nothing but the joins is left in shared memory; registers hold the row instead: shared_load_wavefronts and shared_bytes fall, registers_per_thread rise, and global_load_sectors stay."
bottleneck = "Device-memory bandwidth, as long as enough blocks fit on an SM for some to load while others compute."
arguments = ["rows", "columns", "x", "y"]

[moves]
global_load_sectors = "stays"
shared_bytes = "falls"
shared_load_wavefronts = "falls"
registers_per_thread = "rises"

[launch]
block = [512]
any_block = true
grid = ["rows"]

[parameters]
VECTORS = 4 # 16-byte words of a row per thread

[candidates]
VECTORS = [1, 2, 4, 8]
block = [[64], [128], [256], [512], [1024]]

[[require]]
condition = "block_x % 32 == 0 and block_y == 1 and block_z == 1"
because = "{id} gives each row to a one-dimensional block of whole warps"

[[require]]
condition = "VECTORS >= 1 and columns <= 4 * VECTORS * block_x"
because = "{id} keeps a row in registers: it has room for 4 * VECTORS columns a thread"
*/

#define WARPS (BLOCK_X / 32)
#define NOTHING __int_as_float(0xff800000) // minus infinity: never the maximum, and its exponential is 0

// Four neighbours in a row, of which the first `count` exist; the others change neither maximum nor sum.
static __device__ __forceinline__ float4 load4(const real *source, int count, bool vector)
{
    if (vector)
        return count > 0 ? *(const float4 *)source : make_float4(NOTHING, NOTHING, NOTHING, NOTHING);
    return make_float4(count > 0 ? source[0] : NOTHING, count > 1 ? source[1] : NOTHING,
                       count > 2 ? source[2] : NOTHING, count > 3 ? source[3] : NOTHING);
}

static __device__ __forceinline__ void store4(real *target, float4 value, int count, bool vector)
{
    if (vector) {
        if (count > 0)
            *(float4 *)target = value;
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

extern "C" __global__ void __launch_bounds__(BLOCK_X)
    registers(int rows, int columns, const real *x, real *y)
{
    // Coordinates: this block's row; a thread takes four elements of every 4 BLOCK_X.
    const real *in = x + (size_t)blockIdx.x * columns;
    real *out = y + (size_t)blockIdx.x * columns;
    const int first = 4 * threadIdx.x;
    __shared__ real maxima[WARPS];
    __shared__ real sums[WARPS];

    // Load. Rows must start at multiples of 16 bytes to be moved so.
    const bool vector = columns % 4 == 0 && ((size_t)x | (size_t)y) % 16 == 0;
    float4 row[VECTORS];
#pragma unroll
    for (int i = 0; i < VECTORS; ++i) {
        const int column = first + 4 * BLOCK_X * i;
        row[i] = load4(in + column, columns - column, vector);
    }

    // The maximum.
    real top = NOTHING;
#pragma unroll
    for (int i = 0; i < VECTORS; ++i)
        top = max(top, top_of(row[i]));
    top = join_block(top, maxima, [](real a, real b) { return max(a, b); });

    // The exponentials, and their sum.
    real sum = 0;
#pragma unroll
    for (int i = 0; i < VECTORS; ++i) {
        row[i] = exponentials(row[i], top);
        sum += sum_of(row[i]);
    }
    sum = join_block(sum, sums, [](real a, real b) { return a + b; });

    // Write back.
    const real scale = 1 / sum;
#pragma unroll
    for (int i = 0; i < VECTORS; ++i) {
        const int column = first + 4 * BLOCK_X * i;
        store4(out + column, scaled(row[i], scale), columns - column, vector);
    }
}
