// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "One word of padding per row"
problem = "transpose"
rung = 110
idea = "Each row of the tile is one word longer than it needs to be, so that the words of a column fall into different banks."
after = "smem_tile"
change = "shared_load_bank_conflicts goes to 0; nothing else differs from smem_tile."
bottleneck = "Latency: each thread has one load in flight, and every block waits for all of its own."
dtypes = ["f32", "f64"]
arguments = ["nx", "ny", "in", "out"]

[moves]
shared_load_bank_conflicts = "falls"
shared_load_wavefronts = "falls"
global_load_sectors = "stays"

[launch]
block = [32, 32]
grid = ["cdiv(nx, TILE)", "cdiv(ny, TILE)"]

[constants]
TILE = 32
*/


extern "C" __global__ void smem_padded(int nx, int ny, const real *in, real *out)
{
    // Coordinates of the tile in the input, and of this thread in the tile.
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int x0 = blockIdx.x * TILE; // first column of the input, first row of the output
    const int y0 = blockIdx.y * TILE; // first row of the input, first column of the output

    // Shared memory. With a row of 33 words, element (y, x) lies in bank (33 y + x) % 32 = (y + x) % 32.
    __shared__ real tile[TILE][TILE + 1];

    // Load: x walks a row of the input.
    if (x0 + tx < nx && y0 + ty < ny)
        tile[ty][tx] = in[(size_t)(y0 + ty) * nx + x0 + tx];
    __syncthreads();

    // Write back: x walks a row of the output, which is a column of the tile.
    if (x0 + ty < nx && y0 + tx < ny)
        out[(size_t)(x0 + ty) * ny + y0 + tx] = tile[tx][ty];
}
