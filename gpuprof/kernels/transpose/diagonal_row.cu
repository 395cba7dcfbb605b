// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Diagonal block order, reading rows"
problem = "transpose"
rung = 70
study = "E"
aliases = ["transposeDiagonalRow"]
idea = "Blocks are renumbered along diagonals; each moves a tile as naive_row does."
after = "naive_row"
change = "naive_row with another order of blocks, meant for old cards whose memory partitions were camped on: no counter of memory moves."
bottleneck = "Store sectors, as in naive_row."
reference = "Study E, transposeDiagonalRow; the study's mapping needs a square grid, here any grid"
dtypes = ["f32", "f64"]
arguments = ["nx", "ny", "in", "out"]

[moves]
global_load_sectors = "stays"
global_store_sectors = "stays"

[launch]
block = [16, 16]
any_block = true
grid = ["cdiv(nx, block_x)", "cdiv(ny, block_y)"]

[candidates]
block = [[8, 8], [8, 32], [16, 8], [16, 16], [32, 4], [32, 8], [32, 16], [64, 4]]

[[published]]
size = "2048"
note = "356.8 GB/s, 35.4 % of a 1008 GB/s peak, block 16x16"
*/

extern "C" __global__ void diagonal_row(int nx, int ny, const real *in, real *out)
{
    // Block coordinates in diagonal order: blocks that run together lie on a diagonal, so that their columns
    // spread over the memory partitions. y takes every value once per gridDim.y blocks and x is shifted by y,
    // hence each tile is visited exactly once on any grid.
    const unsigned long long block = (unsigned long long)blockIdx.y * gridDim.x + blockIdx.x;
    const int block_y = (int)(block % gridDim.y);
    const int block_x = (int)((block / gridDim.y + block_y) % gridDim.x);

    // Coordinates in the input: x walks a row.
    const int column = block_x * blockDim.x + threadIdx.x; // 0 .. nx-1
    const int row = block_y * blockDim.y + threadIdx.y;    // 0 .. ny-1
    if (column >= nx || row >= ny)
        return;

    // Write back.
    out[(size_t)column * ny + row] = in[(size_t)row * nx + column];
}
