// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A warp a row"
operation = "softmax"
rung = 90
idea = "For short rows: a warp keeps a row in its registers, and needs neither shared memory nor a barrier."
after = "registers"
change = "Warps no longer wait for each other, and several rows share a block: barriers and grid_blocks fall, while each lane holds more of its row."
bottleneck = "Device-memory bandwidth and launch latency. Long rows would not fit the registers of one warp."
arguments = ["rows", "columns", "x", "y"]

[moves]
barriers = "falls"
shared_load_wavefronts = "falls"
grid_blocks = "falls"
global_load_sectors = "stays"

[launch]
block = [128]
any_block = true
grid = ["cdiv(rows, block_x // 32)"]

[parameters]
VECTORS = 8 # 16-byte words of a row per lane

[candidates]
VECTORS = [1, 2, 4, 8, 16]
block = [[32], [64], [128], [256], [512]]

[[require]]
condition = "block_x >= 32 and block_x % 32 == 0 and block_y == 1 and block_z == 1"
because = "{id} gives each row to a warp: the block must be whole warps in x"

[[require]]
condition = "VECTORS >= 1 and columns <= 128 * VECTORS"
because = "{id} keeps a row in a warp's registers: it has room for 128 * VECTORS columns"
*/

#include "float4_row.cuh"
#include "joins.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_X)
    warp_row(int rows, int columns, const real *x, real *y)
{
    // Coordinates: this warp's row; a lane takes four elements of every 128.
    const int r = blockIdx.x * (BLOCK_X / 32) + threadIdx.x / 32;
    if (r >= rows)
        return;
    const real *in = x + (size_t)r * columns;
    real *out = y + (size_t)r * columns;
    const int first = threadIdx.x % 32 * 4;

    // Load. Rows must start at multiples of 16 bytes to be moved so.
    const bool vector = columns % 4 == 0 && ((size_t)x | (size_t)y) % 16 == 0;
    float4 row[VECTORS];
#pragma unroll
    for (int i = 0; i < VECTORS; ++i)
        row[i] = load4(in + first + 128 * i, columns - first - 128 * i, vector);

    // The maximum.
    real top = NOTHING;
#pragma unroll
    for (int i = 0; i < VECTORS; ++i)
        top = max(top, top_of(row[i]));
    top = join_warp(top, [](real a, real b) { return max(a, b); });

    // The exponentials, and their sum.
    real sum = 0;
#pragma unroll
    for (int i = 0; i < VECTORS; ++i) {
        row[i] = exponentials(row[i], top);
        sum += sum_of(row[i]);
    }
    sum = join_warp(sum, [](real a, real b) { return a + b; });

    // Write back.
    const real scale = 1 / sum;
#pragma unroll
    for (int i = 0; i < VECTORS; ++i)
        store4(out + first + 128 * i, scaled(row[i], scale), columns - first - 128 * i, vector);
}
