// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Whole sectors of rows that start anywhere"
problem = "transpose"
rung = 135
idea = "Where rows of the output are no multiple of 32 bytes, a tile's edge cuts sectors of the cache and words of memory, and two blocks write a part of each. Here a block writes of each row what begins and ends with a multiple of LINE bytes: from up to seven elements before its tile, for which it loads as many rows more. Copies that no thread waits for bring the tile, so that registers do not limit how many are under way, 16 bytes at once where rows of a large matrix start anywhere: rows are padded such that these lie in shared memory as in the input, and a column of them meets many banks. Two blocks side by side are a cluster then: what they share crosses the halves of the L2 cache once. A row of the tile is written at once, as the L1 cache joins what goes to one line. Of a large matrix or short rows the L2 cache fetches 128 or 256 bytes of device memory at once. Blocks are numbered down the input's columns, or along its rows where these are short and columns longer than that cache keeps: their neighbours run soon after, and find the lines that both need there."
after = "smem_unrolled"
change = "Each sector of the output is written once, as a whole: global_store_sectors fall where rows are ragged. Rows above the tile are loaded twice, the second time from the L2 cache."
bottleneck = "What joins the halves of the L2 cache, over 90 % busy on an H200 (lts__ltcfabric2ltc_cycles_active): a sector that two blocks read may cross it twice."
dtypes = ["f32", "f64"]
arguments = ["nx", "ny", "in", "out"]

[moves]
async_copy_requests = "rises"
shared_bytes = "rises"

[launch]
block = [32, 16]
grid = ["CLUSTER * cdiv(nx, CLUSTER * WIDTH) * cdiv(ny * real_bytes + LINE - real_bytes, SPAN)"]
dynamic_shared_bytes = "(SPAN + LINE - real_bytes) * PITCH"

[constants]
RAGGED = "nx * ny * real_bytes > l2_bytes and (nx * real_bytes % 16 > 0 or ny * real_bytes % 16 > 0)" # whether a large matrix has rows that start anywhere, before or after
HUGE = "nx * ny * real_bytes > 4 * l2_bytes"
FETCH = "256 if not RAGGED and nx * real_bytes <= 1536 else 0 if real_bytes == 8 else 256 if HUGE else 128 if 2 * nx * ny * real_bytes > 3 * l2_bytes else 0" # bytes that the L2 cache fetches: more than are asked for pay where rows are a few lines, and where a tile's are and the matrix is larger than the cache
SPAN = "TILE if TILE else 640 if RAGGED and HUGE else 512" # bytes of a row of the output per block
PIECE = "(BYTES if BYTES else 16 if RAGGED else real_bytes) // real_bytes" # elements that a copy brings
EVEN = "PIECE if nx % PIECE == 0 else 1" # elements at whose multiples rows of the input begin
PITCH = "WIDTH + EVEN + (PIECE if EVEN < PIECE else 0)" # elements from row to row, padded as in smem_padded
CLUSTER = "SHARING if SHARING else 2 if RAGGED and arch >= 90 else 1" # blocks side by side
NARROW = "2 * nx < ny and (not RAGGED or 4 * ny * CLUSTER * WIDTH * real_bytes > l2_bytes)" # whether blocks are numbered along the input's rows

[parameters]
TILE = 0 # bytes of a row of the output per block; 0 for 512, or 640 of a matrix of many times the L2 cache
WIDTH = 64 # rows of the output per block
LINE = 32  # bytes at whose multiples a row of a tile begins
BYTES = 0  # that a copy brings; 0 for 16 where rows of a large matrix start anywhere, else an element's
SHARING = 0 # blocks of a cluster, side by side; 0 for two where a large matrix has such rows

[candidates]
TILE = [0, 128, 256, 384, 512, 640, 768, 1024]
WIDTH = [32, 64, 96, 128]
LINE = [32, 64, 128]
BYTES = [0, 16]
SHARING = [0, 1, 2]

[[require]]
condition = "SPAN > 0 and SPAN % LINE == 0 and WIDTH > 0 and WIDTH % 32 == 0"
because = "{id} writes whole LINEs and loads rows by whole warps: TILE must be a multiple of LINE, WIDTH of 32"

[[require]]
condition = "BYTES == 0 or BYTES == 16 or BYTES == real_bytes"
because = "{id} copies an element or 16 bytes at once"

[[require]]
condition = "0 <= SHARING and SHARING <= 8"
because = "a cluster has at most 8 blocks: SHARING must be one of 0 to 8"

[[require]]
condition = "arch >= 80 and (arch >= 90 or CLUSTER == 1)"
because = "{id} copies with cp.async, which needs compute capability 8.0, and clusters need 9.0"
*/

#include "cp_async.cuh"

#define COLUMNS (SPAN / (int)sizeof(real)) // of the output per block
#define UNIT (LINE / (int)sizeof(real))    // elements of a LINE
#define ABOVE (UNIT - 1)                   // rows of the input above the tile
#define PIECES (WIDTH / PIECE + (EVEN < PIECE)) // that a row may lie in
#define HELD (PIECE > 1 ? COLUMNS : BLOCK_X) // elements of a row that are written at once

extern "C" __global__ void __launch_bounds__(512, 4)
#if CLUSTER > 1
    __cluster_dims__(CLUSTER, 1, 1)
#endif
        smem_sectors(int nx, int ny, const real *in, real *out)
{
    // Coordinates of the tile in the input, and of this thread in the tile.
    const int tx = threadIdx.x; // 0 .. 31
    const int ty = threadIdx.y; // 0 .. 15
    const int across = (nx + CLUSTER * WIDTH - 1) / (CLUSTER * WIDTH);
    const int down = (ny + ABOVE + COLUMNS - 1) / COLUMNS;
    const int b = blockIdx.x / CLUSTER;
    // First column of the input, first row of the output; first row of the input, first column of the output.
    const int x0 = ((NARROW ? b % across : b / down) * CLUSTER + blockIdx.x % CLUSTER) * WIDTH;
    const int y0 = (NARROW ? b / across : b % down) * COLUMNS;

    // Where an element of the tile is kept: pieces must lie in shared memory as they do in the input.
    extern __shared__ __align__(16) real tile[];
    const auto lead_of = [&](int row) { return (int)(((unsigned)(y0 - ABOVE + row) * nx + x0) % PIECE); };
    const auto place_of = [&](int row, int x) { return row * PITCH - row * EVEN % PIECE + lead_of(row) + x; };

    // Load the rows of the tile and of what is above it, piece by piece.
    if (PIECE > 1)
#pragma unroll
        for (int i = 0; i < (COLUMNS + ABOVE) * PIECES; i += BLOCK_X * BLOCK_Y) {
            const int row = (i + ty * BLOCK_X + tx) / PIECES;
            const int x = (i + ty * BLOCK_X + tx) % PIECES * PIECE - lead_of(row);
            const size_t element = (size_t)(y0 - ABOVE + row) * nx + x0 + x;
            if (row >= COLUMNS + ABOVE || (unsigned)(y0 - ABOVE + row) >= (unsigned)ny || x >= min(WIDTH, nx - x0))
                continue;
            if (element + PIECE <= (size_t)nx * ny)
                copy<16, FETCH, true>(tile + place_of(row, x), in + element);
            else
                for (int j = 0; element + j < (size_t)nx * ny; ++j)
                    copy<sizeof(real)>(tile + place_of(row, x + j), in + element + j);
        }

    // Else rows ty, ty + 16, …, 32 columns at a time.
#pragma unroll
    for (int y = 0; y < (PIECE > 1 ? 0 : COLUMNS + ABOVE); y += BLOCK_Y)
#pragma unroll
        for (int x = 0; x < WIDTH; x += BLOCK_X)
            if (x0 + tx + x < nx && ty + y < COLUMNS + ABOVE && (unsigned)(y0 + ty + y - ABOVE) < (unsigned)ny)
                copy<sizeof(real), FETCH>(tile + place_of(ty + y, tx + x),
                                          in + (size_t)(y0 + ty + y - ABOVE) * nx + x0 + tx + x);
    wait_for_copies();
    __syncthreads();

    // Write back columns ty, ty + 16, … of the tile as rows of the output, each from where a LINE begins. Where
    // bank conflicts slow the reading, a row is read whole before: the L1 cache joins what closely follows to a line.
#pragma unroll
    for (int x = 0; x < WIDTH; x += BLOCK_Y) {
        const int row = x0 + ty + x;
        real *target = out + (size_t)row * ny + y0;
        const int cut = (size_t)target / sizeof(real) % UNIT;
        const real *source = tile + place_of(tx + ABOVE - cut, ty + x); // every 32nd row lies alike
        const auto exists = [&](int y) {
            return row < nx && y + tx < COLUMNS && (unsigned)(y0 + y + tx - cut) < (unsigned)ny;
        };
        real value[(HELD + BLOCK_X - 1) / BLOCK_X];
#pragma unroll
        for (int i = 0; i < COLUMNS; i += HELD) {
#pragma unroll
            for (int y = 0; y < HELD; y += BLOCK_X)
                if (exists(i + y))
                    value[y / BLOCK_X] = source[(i + y) * PITCH];
#pragma unroll
            for (int y = 0; y < HELD; y += BLOCK_X)
                if (exists(i + y))
                    target[i + y + tx - cut] = value[y / BLOCK_X];
        }
    }
}
