// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Rows in registers, by any number of threads"
operation = "softmax"
idea = "A group of threads holds a row in registers; how many threads, how many rows a block, and how they move it are parameters."
dtypes = ["f32"]

[parameters]
THREADS = 256 # of one row
ROWS = 1      # of a block
WORDS = 8     # pieces of a row that each thread holds
VECTOR = 4    # elements of a piece, moved at once
FAST = 0      # 1: the exponential of the special function unit alone
JOIN = 0      # how warps join: 0 through shared memory by all, 1 by the first warp
KEEP = 0      # 0: stores are kept in the caches, 1: they pass through

[candidates]
THREADS = [32, 64, 128, 256, 512, 1024]
ROWS = [1, 2, 4, 8]
WORDS = [1, 2, 4, 8, 16, 32, 64, 128]
VECTOR = [1, 2, 4]
FAST = [0, 1]
JOIN = [0, 1]
KEEP = [0, 1]

[[launches]]
entry = "softmax_rows"
arguments = ["rows", "columns", "x", "y"]
block = ["THREADS", "ROWS"]
grid = ["cdiv(rows, ROWS)"]

[[require]]
condition = "THREADS * ROWS <= 1024"
because = "{id} gives each of ROWS rows THREADS threads, and a block holds 1024"

[[require]]
condition = "columns <= THREADS * WORDS * VECTOR and (WORDS == 1 or 8 * columns > THREADS * WORDS * VECTOR)"
because = "{id} keeps a row in registers: there must be room for it, and an eighth of the room must be used"

[[require]]
condition = "WORDS * VECTOR <= 128"
because = "{id} keeps at most 128 elements of a row in a thread"

[[require]]
condition = "columns % VECTOR == 0"
because = "{id} moves VECTOR elements at once"
*/

#define NOTHING __int_as_float(0xff800000) // minus infinity: never the maximum, and its exponential is 0
#define WARPS (THREADS / 32)

// VECTOR neighbours, moved at once.
struct __align__(4 * VECTOR) Words
{
    real word[VECTOR];
};

static __device__ __forceinline__ real power(real value)
{
    return FAST ? __expf(value) : exp(value);
}

// The join of a row's values; every thread of the row gets it.
template <typename Join> static __device__ __forceinline__ real join_row(real value, real *shared, Join join)
{
#pragma unroll
    for (int lane = 16; lane > 0; lane /= 2)
        value = join(value, __shfl_xor_sync(0xffffffff, value, lane));
    if (WARPS == 1)
        return value;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 0)
        shared[warp] = value;
    __syncthreads();
    if (JOIN == 0) {
        real joined = shared[0];
#pragma unroll
        for (int i = 1; i < WARPS; ++i)
            joined = join(joined, shared[i]);
        return joined;
    }
    if (warp == 0) {
        real joined = shared[lane % WARPS];
#pragma unroll
        for (int step = WARPS / 2; step > 0; step /= 2)
            joined = join(joined, __shfl_xor_sync(0xffffffff, joined, step));
        if (lane == 0)
            shared[WARPS] = joined;
    }
    __syncthreads();
    return shared[WARPS];
}

extern "C" __global__ void __launch_bounds__(THREADS *ROWS)
    softmax_rows(int rows, int columns, const real *x, real *y)
{
    // Coordinates: this thread's row. Threads past the last row take part in the joins, with nothing.
    const int row = blockIdx.x * ROWS + threadIdx.y;
    const bool there = row < rows;
    __shared__ real maxima[ROWS][WARPS + 1];
    __shared__ real sums[ROWS][WARPS + 1];
    const real *in = x + (size_t)row * columns;
    real *out = y + (size_t)row * columns;

    // Load.
    Words held[WORDS];
#pragma unroll
    for (int i = 0; i < WORDS; ++i) {
        const int column = (i * THREADS + threadIdx.x) * VECTOR;
        if (there && column < columns)
            held[i] = *(const Words *)(in + column);
        else
#pragma unroll
            for (int j = 0; j < VECTOR; ++j)
                held[i].word[j] = NOTHING;
    }

    // The maximum.
    real top = NOTHING;
#pragma unroll
    for (int i = 0; i < WORDS; ++i)
#pragma unroll
        for (int j = 0; j < VECTOR; ++j)
            top = max(top, held[i].word[j]);
    top = join_row(top, maxima[threadIdx.y], [](real a, real b) { return max(a, b); });

    // The exponentials, and their sum.
    real sum = 0;
#pragma unroll
    for (int i = 0; i < WORDS; ++i)
#pragma unroll
        for (int j = 0; j < VECTOR; ++j) {
            held[i].word[j] = there ? power(held[i].word[j] - top) : 0;
            sum += held[i].word[j];
        }
    sum = join_row(sum, sums[threadIdx.y], [](real a, real b) { return a + b; });

    // Write back.
    const real scale = 1 / sum;
#pragma unroll
    for (int i = 0; i < WORDS; ++i) {
        const int column = (i * THREADS + threadIdx.x) * VECTOR;
        if (there && column < columns) {
            Words words = held[i];
#pragma unroll
            for (int j = 0; j < VECTOR; ++j) {
                words.word[j] *= scale;
                if (KEEP)
                    __stcs(out + column + j, words.word[j]);
            }
            if (!KEEP)
                *(Words *)(out + column) = words;
        }
    }
}
