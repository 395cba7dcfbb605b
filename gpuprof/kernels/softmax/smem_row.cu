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

#include "float4_row.cuh"
#include "joins.cuh"

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
        row[i] = load4<true>(in + 4 * i, columns - 4 * i, vector);
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
        store4<true>(out + 4 * i, scaled(row[i], scale), columns - 4 * i, vector);
}
