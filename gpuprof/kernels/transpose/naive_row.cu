// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Transpose, reading rows"
problem = "transpose"
rung = 30
study = "E"
aliases = ["transposeNaiveRow"]
idea = "Each thread moves one element; x walks along a row of the input, so the stores walk down a column."
after = "copy_row"
change = "The first real transpose: loads as in copy_row, stores as in copy_col, so store efficiency falls to 25 % at 16x16."
bottleneck = "Store sectors: every lane of a warp writes its own sector."
reference = "Study E, transposeNaiveRow"
dtypes = ["f32", "f64"]
arguments = ["nx", "ny", "in", "out"]

[moves]
global_load_efficiency_pct = "stays"
global_store_efficiency_pct = "falls"

[launch]
block = [16, 16]
any_block = true
grid = ["cdiv(nx, block_x)", "cdiv(ny, block_y)"]

[candidates]
block = [[8, 8], [8, 32], [16, 8], [16, 16], [32, 4], [32, 8], [32, 16], [64, 4]]

[[published]]
size = "2048"
note = "341.9 GB/s, 33.9 % of a 1008 GB/s peak, block 16x16"
*/

extern "C" __global__ void naive_row(int nx, int ny, const real *in, real *out)
{
    // Coordinates in the input: x walks a row.
    const int column = blockIdx.x * blockDim.x + threadIdx.x; // 0 .. nx-1
    const int row = blockIdx.y * blockDim.y + threadIdx.y;    // 0 .. ny-1
    if (column >= nx || row >= ny)
        return;

    // Write back: the load is coalesced, the store scatters over rows of the output.
    out[(size_t)column * ny + row] = in[(size_t)row * nx + column];
}
