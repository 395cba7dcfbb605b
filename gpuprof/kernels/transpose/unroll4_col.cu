// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Four elements per thread, reading columns"
problem = "transpose"
rung = 60
study = "E"
aliases = ["transposeUnroll4Col"]
idea = "Each thread moves four elements, one block width apart along a row of the output."
after = "naive_col"
change = "naive_col with a quarter of the blocks and four independent loads in flight per thread: no counter of memory moves, registers rise."
bottleneck = "Load sectors, softened by the L1 cache."
reference = "Study E, transposeUnroll4Col; the study drops the tail when the width is no multiple of 4 * block x, here it is moved too"
dtypes = ["f32", "f64"]
arguments = ["nx", "ny", "in", "out"]

[moves]
grid_blocks = "falls"
registers_per_thread = "rises"
global_load_efficiency_pct = "stays"

[launch]
block = [16, 16]
any_block = true
grid = ["cdiv(ny, 4 * block_x)", "cdiv(nx, block_y)"]

[candidates]
block = [[8, 8], [8, 32], [16, 8], [16, 16], [32, 4], [32, 8], [32, 16], [64, 4]]

[[published]]
size = "2048"
note = "673.5 GB/s, 66.8 % of a 1008 GB/s peak, block 16x16"
*/

extern "C" __global__ void unroll4_col(int nx, int ny, const real *in, real *out)
{
    // Coordinates in the output: x walks a row, four block widths per block.
    const int first = blockIdx.x * blockDim.x * 4 + threadIdx.x; // 0 .. ny-1
    const int row = blockIdx.y * blockDim.y + threadIdx.y;       // 0 .. nx-1
    if (row >= nx)
        return;

    // Write back; each of the four columns is checked alone, so a width that is no multiple of four blocks works.
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const int column = first + j * blockDim.x;
        if (column < ny)
            out[(size_t)row * ny + column] = in[(size_t)column * nx + row];
    }
}
