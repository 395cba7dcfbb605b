// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Many blocks a row"
operation = "softmax"
rung = 80
idea = "For few long rows: each block leaves the maximum and the sum of its part of a row for a second launch, in which every block joins those of its row."
after = "float4_online"
change = "A single row keeps all SMs busy. Words of 16 bytes are those of memory, whatever the length of rows, and the second launch walks backwards: what was read last may still be in the L2 cache."
bottleneck = "Device-memory bandwidth; for a single row, two launches."

[moves]
grid_blocks = "rises"

[workspace.parts]
shape = ["rows", "min(cdiv(columns + 3, 4096), cdiv(BLOCKS_PER_SM * sm_count, rows))", "2"]

[[launches]]
entry = "measure"
arguments = ["columns", "x", "parts"]
block = [256]
grid = ["min(cdiv(columns + 3, 4096), cdiv(BLOCKS_PER_SM * sm_count, rows))", "rows"]

[[launches]]
entry = "divide"
arguments = ["columns", "x", "parts", "y"]
block = [256]
grid = ["min(cdiv(columns + 3, 4096), cdiv(BLOCKS_PER_SM * sm_count, rows))", "rows"]

[parameters]
BLOCKS_PER_SM = 4 # of all rows together

[candidates]
BLOCKS_PER_SM = [2, 4, 8, 16]

[[require]]
condition = "BLOCKS_PER_SM >= 1 and rows <= 65535"
because = "{id} has a row of blocks for each of up to 65535 rows"
*/

#define BLOCK_X 256

#include "float4_row.cuh"
#include "joins.cuh"

#define LOWEST -3.4028234663852886e38f // below every element, and finite: differences with it are numbers

// The block's part of a row: of its words of 16 bytes as they lie in memory every so many. The first and the last word of a row
// are in part its neighbours'.
struct Part {
    size_t begin, end;
    bool vector;

    __device__ Part(int columns, const real *x)
        : begin((size_t)blockIdx.y * columns), end(begin + columns), vector((size_t)x % 16 == 0)
    {
    }
    __device__ int words() const { return (int)((end + 3) / 4 - begin / 4); }
    __device__ bool has(size_t i) const { return i >= begin && i < end; }
    __device__ float4 load(const real *x, int word) const
    {
        const size_t i = (begin / 4 + word) * 4;
        if (vector && has(i) && has(i + 3))
            return *(const float4 *)(x + i);
        return make_float4(has(i) ? x[i] : NOTHING, has(i + 1) ? x[i + 1] : NOTHING, has(i + 2) ? x[i + 2] : NOTHING,
                           has(i + 3) ? x[i + 3] : NOTHING);
    }
    __device__ void store(real *y, int word, float4 v) const
    {
        const size_t i = (begin / 4 + word) * 4;
        if (vector && has(i) && has(i + 3))
            return __stcs((float4 *)(y + i), v);
        const real values[4] = {v.x, v.y, v.z, v.w};
        for (int k = 0; k < 4; ++k)
            if (has(i + k))
                y[i + k] = values[k];
    }
};

// All threads' joint maximum and sum, of which each sum is relative to its maximum.
static __device__ void join(real &top, real &sum)
{
    __shared__ real maxima[WARPS];
    __shared__ real sums[WARPS];
    const real own = top;
    top = join_block(top, maxima, [](real a, real b) { return max(a, b); });
    sum = join_block(sum * exp(own - top), sums, [](real a, real b) { return a + b; });
}

extern "C" __global__ void __launch_bounds__(BLOCK_X) measure(int columns, const real *x, float2 *parts)
{
    const Part part(columns, x);
    real top = LOWEST, sum = 0;
#pragma unroll 4
    for (int word = blockIdx.x * BLOCK_X + threadIdx.x; word < part.words(); word += gridDim.x * BLOCK_X) {
        const float4 v = part.load(x, word);
        const real higher = max(top, top_of(v));
        sum = sum * exp(top - higher) + sum_of(exponentials(v, higher));
        top = higher;
    }
    join(top, sum);
    if (threadIdx.x == 0)
        parts[blockIdx.y * gridDim.x + blockIdx.x] = make_float2(top, sum);
}

extern "C" __global__ void __launch_bounds__(BLOCK_X) divide(int columns, const real *x, const float2 *parts, real *y)
{
    const Part part(columns, x);
    real top = LOWEST, sum = 0;
    for (int i = threadIdx.x; i < gridDim.x; i += BLOCK_X) {
        const float2 other = parts[blockIdx.y * gridDim.x + i];
        const real higher = max(top, other.x);
        sum = sum * exp(top - higher) + other.y * exp(other.x - higher);
        top = higher;
    }
    join(top, sum);

    const real scale = 1 / sum;
    const int last = part.words() - 1;
#pragma unroll 4
    for (int back = blockIdx.x * BLOCK_X + threadIdx.x; back <= last; back += gridDim.x * BLOCK_X)
        part.store(y, last - back, scaled(exponentials(part.load(x, last - back), top), scale));
}
