// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A tile in shared memory"
problem = "transpose"
rung = 100
idea = "The block reads a tile by rows, keeps it in shared memory, and writes it by rows of the output: the turn happens on chip."
after = "naive_row"
change = "Global loads and stores are both whole sectors: store efficiency rises to 100 % as well, and shared_load_bank_conflicts appear."
bottleneck = "Shared-memory bank conflicts: the lanes of a warp read one column of the tile, and its 32 words share a bank."
dtypes = ["f32", "f64"]
arguments = ["nx", "ny", "in", "out"]

[moves]
global_load_efficiency_pct = "stays"
global_store_efficiency_pct = "rises"
shared_load_bank_conflicts = "rises"

[launch]
block = [32, 32]
grid = ["cdiv(nx, TILE)", "cdiv(ny, TILE)"]

[constants]
TILE = 32
*/


extern "C" __global__ void smem_tile(int nx, int ny, const real *in, real *out)
{
    // Coordinates of the tile in the input, and of this thread in the tile.
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int x0 = blockIdx.x * TILE; // first column of the input, first row of the output
    const int y0 = blockIdx.y * TILE; // first row of the input, first column of the output

    // Shared memory, laid out as the input is.
    __shared__ real tile[TILE][TILE];

    // Load: x walks a row of the input.
    if (x0 + tx < nx && y0 + ty < ny)
        tile[ty][tx] = in[(size_t)(y0 + ty) * nx + x0 + tx];
    __syncthreads();

    // Write back: x walks a row of the output, which is a column of the tile.
    if (x0 + ty < nx && y0 + tx < ny)
        out[(size_t)(x0 + ty) * ny + y0 + tx] = tile[tx][ty];
}
