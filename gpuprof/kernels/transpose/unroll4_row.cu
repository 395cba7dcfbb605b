// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Four elements per thread, reading rows"
problem = "transpose"
rung = 50
study = "E"
aliases = ["transposeUnroll4Row"]
idea = "Each thread moves four elements, one block width apart along a row of the input."
after = "naive_row"
change = "naive_row with a quarter of the blocks and four independent loads in flight per thread: no counter of memory moves, registers rise."
bottleneck = "Store sectors, as in naive_row."
reference = "Study E, transposeUnroll4Row; the study drops the tail when nx is no multiple of 4 * block x, here it is moved too"
dtypes = ["f32", "f64"]
arguments = ["nx", "ny", "in", "out"]

[moves]
grid_blocks = "falls"
registers_per_thread = "rises"
global_store_efficiency_pct = "stays"

[launch]
block = [16, 16]
any_block = true
grid = ["cdiv(nx, 4 * block_x)", "cdiv(ny, block_y)"]

[candidates]
block = [[8, 8], [8, 32], [16, 8], [16, 16], [32, 4], [32, 8], [32, 16], [64, 4]]

[[published]]
size = "2048"
note = "224.4 GB/s, 22.3 % of a 1008 GB/s peak, block 16x16"
*/

extern "C" __global__ void unroll4_row(int nx, int ny, const real *in, real *out)
{
    // Coordinates in the input: x walks a row, four block widths per block.
    const int first = blockIdx.x * blockDim.x * 4 + threadIdx.x; // 0 .. nx-1
    const int row = blockIdx.y * blockDim.y + threadIdx.y;       // 0 .. ny-1
    if (row >= ny)
        return;

    // Write back; each of the four columns is checked alone, so a width that is no multiple of four blocks works.
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const int column = first + j * blockDim.x;
        if (column < nx)
            out[(size_t)column * ny + row] = in[(size_t)row * nx + column];
    }
}
