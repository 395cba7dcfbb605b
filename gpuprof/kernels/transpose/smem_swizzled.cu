// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A swizzle instead of padding"
problem = "transpose"
rung = 120
idea = "Element (y, x) is kept at column x ^ y: rows and columns of the tile both spread over all 32 banks, and no word is wasted."
after = "smem_padded"
change = "As free of bank conflicts as smem_padded, with a tile of exactly 4 KiB for a few XOR instructions: only the shared memory falls. On an H200 those instructions cost up to one percent of the time."
bottleneck = "Latency, as in smem_padded."
dtypes = ["f32", "f64"]
arguments = ["nx", "ny", "in", "out"]

[moves]
shared_load_bank_conflicts = "stays"
shared_bytes = "falls"

[launch]
block = [32, 32]
grid = ["cdiv(nx, TILE)", "cdiv(ny, TILE)"]

[constants]
TILE = 32
*/


extern "C" __global__ void smem_swizzled(int nx, int ny, const real *in, real *out)
{
    // Coordinates of the tile in the input, and of this thread in the tile.
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int x0 = blockIdx.x * TILE; // first column of the input, first row of the output
    const int y0 = blockIdx.y * TILE; // first row of the input, first column of the output

    // Shared memory. Row y holds its elements at x ^ y, a different permutation of the banks for each row.
    __shared__ real tile[TILE][TILE];

    // Load: x walks a row of the input.
    if (x0 + tx < nx && y0 + ty < ny)
        tile[ty][tx ^ ty] = in[(size_t)(y0 + ty) * nx + x0 + tx];
    __syncthreads();

    // Write back: x walks a row of the output, which is a column of the tile.
    if (x0 + ty < nx && y0 + tx < ny)
        out[(size_t)(x0 + ty) * ny + y0 + tx] = tile[tx][ty ^ tx];
}
