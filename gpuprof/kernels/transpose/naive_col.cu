// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Transpose, reading columns"
problem = "transpose"
rung = 40
study = "E"
aliases = ["transposeNaiveCol"]
idea = "Each thread moves one element; x walks along a row of the output, so the loads walk down a column."
after = "naive_row"
change = "The scattered side is now the loads, whose unused bytes wait in the L1 cache for the neighbouring warp: load efficiency falls, store efficiency rises."
bottleneck = "Load sectors, softened by the L1 cache."
reference = "Study E, transposeNaiveCol"
dtypes = ["f32", "f64"]
arguments = ["nx", "ny", "in", "out"]

[moves]
global_load_efficiency_pct = "falls"
global_store_efficiency_pct = "rises"

[launch]
block = [16, 16]
any_block = true
grid = ["cdiv(ny, block_x)", "cdiv(nx, block_y)"]

[candidates]
block = [[8, 8], [8, 32], [16, 8], [16, 16], [32, 4], [32, 8], [32, 16], [64, 4]]

[[published]]
size = "2048"
note = "697.2 GB/s, 69.2 % of a 1008 GB/s peak, block 16x16"

[[published]]
size = "2048"
note = "814.1 GB/s, 80.8 % of a 1008 GB/s peak, block 8x32: the best of the study's thin blocks"
*/

extern "C" __global__ void naive_col(int nx, int ny, const real *in, real *out)
{
    // Coordinates in the output: x walks a row.
    const int column = blockIdx.x * blockDim.x + threadIdx.x; // 0 .. ny-1
    const int row = blockIdx.y * blockDim.y + threadIdx.y;    // 0 .. nx-1
    if (column >= ny || row >= nx)
        return;

    // Write back: the store is coalesced, the load gathers from rows of the input.
    out[(size_t)row * ny + column] = in[(size_t)column * nx + row];
}
