// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Whole sectors of rows that start anywhere"
problem = "transpose"
rung = 135
idea = "Where rows of the output are no multiple of 32 bytes, a tile's edge cuts sectors of the cache and words of memory, and two blocks write a part of each. Here a block writes of each row what begins and ends with a multiple of LINE bytes: from up to seven elements before its tile, for which it loads as many rows more. Copies that no thread waits for bring the tile, so that registers do not limit how many are under way, and of a large matrix or short rows the L2 cache fetches 128 or 256 bytes of device memory at once. Blocks are numbered along the input's rows where these are short, else down its columns: their neighbours run soon after, and find the lines that both need in the L2 cache."
after = "smem_unrolled"
change = "Each sector of the output is written once, as a whole: global_store_sectors fall where rows are ragged. Rows above the tile are loaded twice, the second time from the L2 cache."
bottleneck = "Device-memory bandwidth."
dtypes = ["f32", "f64"]
arguments = ["nx", "ny", "in", "out"]

[moves]
async_copy_requests = "rises"
shared_bytes = "rises"

[launch]
block = [32, 16]
grid = ["cdiv(ny * real_bytes + LINE - real_bytes, TILE) * cdiv(nx, WIDTH)"]
dynamic_shared_bytes = "(TILE + LINE - real_bytes) * (WIDTH + 1)"

[constants]
FETCH = "256 if nx * real_bytes <= 1536 or nx * ny * real_bytes > 3 * l2_bytes else 128 if 3 * nx * ny * real_bytes > 4 * l2_bytes else 0" # bytes that the L2 cache fetches: more than are asked for pay where rows are a few lines, and where the matrix is larger than the cache

[parameters]
TILE = 512 # bytes of a row of the output per block
WIDTH = 64 # rows of the output per block
LINE = 32  # bytes at whose multiples a row of a tile begins

[candidates]
TILE = [128, 256, 384, 512, 768, 1024]
WIDTH = [32, 64, 96, 128]
LINE = [32, 64, 128]

[[require]]
condition = "TILE > 0 and TILE % LINE == 0 and WIDTH > 0 and WIDTH % 32 == 0"
because = "{id} writes whole LINEs and loads rows by whole warps: TILE must be a multiple of LINE, WIDTH of 32"

[[require]]
condition = "arch >= 80"
because = "{id} copies with cp.async, which needs compute capability 8.0"
*/

#include "cp_async.cuh"

#define COLUMNS (TILE / (int)sizeof(real)) // of the output per block
#define UNIT (LINE / (int)sizeof(real))    // elements of a LINE
#define ABOVE (UNIT - 1)                   // rows of the input above the tile
#define PITCH (WIDTH + 1)                  // padded as in smem_padded

extern "C" __global__ void __launch_bounds__(512, 4) smem_sectors(int nx, int ny, const real *in, real *out)
{
    // Coordinates of the tile in the input, and of this thread in the tile.
    const int tx = threadIdx.x; // 0 .. 31
    const int ty = threadIdx.y; // 0 .. 15
    const int across = (nx + WIDTH - 1) / WIDTH;
    const int down = (ny + ABOVE + COLUMNS - 1) / COLUMNS;
    const int b = blockIdx.x;
    const bool narrow = nx < ny / 2;
    const int x0 = (narrow ? b % across : b / down) * WIDTH;   // first column of the input, first row of the output
    const int y0 = (narrow ? b / across : b % down) * COLUMNS; // first row of the input, first column of the output

    // Load rows ty, ty + 16, … of the tile and of what is above it, 32 columns at a time.
    extern __shared__ __align__(16) real tile[]; // (row, column)
#pragma unroll
    for (int y = 0; y < COLUMNS + ABOVE; y += BLOCK_Y)
#pragma unroll
        for (int x = 0; x < WIDTH; x += BLOCK_X)
            if (x0 + tx + x < nx && ty + y < COLUMNS + ABOVE && (unsigned)(y0 + ty + y - ABOVE) < (unsigned)ny)
                copy<sizeof(real), FETCH>(tile + (ty + y) * PITCH + tx + x,
                                          in + (size_t)(y0 + ty + y - ABOVE) * nx + x0 + tx + x);
    wait_for_copies();
    __syncthreads();

    // Write back columns ty, ty + 16, … of the tile as rows of the output, each from where a LINE begins.
#pragma unroll
    for (int x = 0; x < WIDTH; x += BLOCK_Y) {
        const int row = x0 + ty + x;
        real *target = out + (size_t)row * ny + y0;
        const int cut = (size_t)target / sizeof(real) % UNIT;
#pragma unroll
        for (int y = tx; y < COLUMNS; y += BLOCK_X)
            if (row < nx && (unsigned)(y0 + y - cut) < (unsigned)ny)
                target[y - cut] = tile[(y + ABOVE - cut) * PITCH + ty + x];
    }
}
