// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A 64x64 tile, sixteen elements per thread"
problem = "transpose"
rung = 130
idea = "A block of 32x8 threads moves a padded 64x64 tile: each thread has sixteen independent loads in flight before the barrier."
after = "smem_padded"
change = "A sixteenth of the threads per element and rows of 256 bytes: barriers fall to a sixteenth for the same global_load_requests, and each thread has sixteen of them in flight."
bottleneck = "Load and store instructions: each moves four bytes per lane."
dtypes = ["f32", "f64"]
arguments = ["nx", "ny", "in", "out"]

[moves]
barriers = "falls"
block_threads = "falls"
grid_blocks = "falls"
registers_per_thread = "rises"
global_load_requests = "stays"

[launch]
block = [32, 8]
grid = ["cdiv(nx, TILE)", "cdiv(ny, TILE)"]

[parameters]
TILE = 64

[candidates]
TILE = [32, 64, 96]

[[require]]
condition = "TILE > 0 and TILE % 32 == 0"
because = "smem_unrolled gives whole warps to the rows of a tile: TILE must be a multiple of 32"

[[require]]
condition = "TILE * (TILE + 1) * real_bytes <= 49152"
because = "smem_unrolled keeps its tile in static shared memory, which holds 48 KiB"
*/

extern "C" __global__ void smem_unrolled(int nx, int ny, const real *in, real *out)
{
    // Coordinates of the tile in the input, and of this thread in the tile.
    const int tx = threadIdx.x;       // 0 .. 31
    const int ty = threadIdx.y;       // 0 .. 7
    const int x0 = blockIdx.x * TILE; // first column of the input, first row of the output
    const int y0 = blockIdx.y * TILE; // first row of the input, first column of the output

    // Shared memory, padded as in smem_padded.
    __shared__ real tile[TILE][TILE + 1];

    // Load rows ty, ty + 8, … of the tile, 32 columns at a time.
#pragma unroll
    for (int y = 0; y < TILE; y += BLOCK_Y)
#pragma unroll
        for (int x = 0; x < TILE; x += BLOCK_X)
            if (x0 + tx + x < nx && y0 + ty + y < ny)
                tile[ty + y][tx + x] = in[(size_t)(y0 + ty + y) * nx + x0 + tx + x];
    __syncthreads();

    // Write back columns ty, ty + 8, … of the tile as rows of the output.
#pragma unroll
    for (int x = 0; x < TILE; x += BLOCK_Y)
#pragma unroll
        for (int y = 0; y < TILE; y += BLOCK_X)
            if (x0 + ty + x < nx && y0 + tx + y < ny)
                out[(size_t)(x0 + ty + x) * ny + y0 + tx + y] = tile[tx + y][ty + x];
}
