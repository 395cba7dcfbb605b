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

#include "float4_row.cuh"
#include "joins.cuh"

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
