// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Whole sectors of rows that start anywhere"
problem = "transpose"
rung = 135
idea = "Where rows of the output are no multiple of 32 bytes, a tile's edge cuts sectors of the cache and words of memory, and two blocks write a part of each. Here a block writes of each row what begins and ends with a multiple of LINE bytes: from up to seven elements before its tile, for which it loads as many rows more. Copies that no thread waits for bring the tile, so that registers do not limit how many are under way, 16 bytes at once where rows of a large matrix start anywhere: each is kept as it lies in lines of memory, and as its neighbours lie otherwise a column of them meets all banks. Two blocks side by side are a cluster then: what they share crosses the halves of the L2 cache once. Of a large matrix or short rows that cache fetches 128 or 256 bytes of device memory at once. Blocks are numbered along the input's rows where these are short, else down its columns: their neighbours run soon after, and find the lines that both need in the L2 cache."
after = "smem_unrolled"
change = "Each sector of the output is written once, as a whole: global_store_sectors fall where rows are ragged. Rows above the tile are loaded twice, the second time from the L2 cache."
bottleneck = "What joins the halves of the L2 cache, 95 % busy on an H200 (lts__ltcfabric2ltc_cycles_active): a sector that two blocks read may cross it twice."
dtypes = ["f32", "f64"]
arguments = ["nx", "ny", "in", "out"]

[moves]
async_copy_requests = "rises"
shared_bytes = "rises"

[launch]
block = [32, 16]
grid = ["CLUSTER * cdiv(nx, CLUSTER * WIDTH) * cdiv(ny * real_bytes + LINE - real_bytes, TILE)"]
dynamic_shared_bytes = "(TILE + LINE - real_bytes) * PITCH"

[constants]
FETCH = "256 if nx * real_bytes <= 1536 or nx * ny * real_bytes > 3 * l2_bytes else 128 if 3 * nx * ny * real_bytes > 4 * l2_bytes else 0" # bytes that the L2 cache fetches: more than are asked for pay where rows are a few lines, and where the matrix is larger than the cache
AT_ONCE = "BYTES if BYTES else 16 if nx * real_bytes % 16 and nx * ny * real_bytes > l2_bytes else real_bytes" # bytes that a copy brings: 16 only where rows start anywhere, as columns of others would meet few banks
PITCH = "WIDTH + (128 // real_bytes if AT_ONCE == 16 else 1)" # elements: a line more than the tile has, or padded as in smem_padded
CLUSTER = "SHARING if SHARING else 2 if AT_ONCE == 16 and arch >= 90 else 1" # blocks side by side

[parameters]
TILE = 512 # bytes of a row of the output per block
WIDTH = 64 # rows of the output per block
LINE = 32  # bytes at whose multiples a row of a tile begins
BYTES = 0  # that a copy brings; 0 for 16 where rows of a large matrix start anywhere, else an element's
SHARING = 0 # blocks of a cluster, side by side; 0 for two where a copy brings 16 bytes

[candidates]
TILE = [128, 256, 384, 512, 768, 1024]
WIDTH = [32, 64, 96, 128]
LINE = [32, 64, 128]
BYTES = [0, 16]
SHARING = [0, 1, 2]

[[require]]
condition = "TILE > 0 and TILE % LINE == 0 and WIDTH > 0 and WIDTH % 32 == 0"
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

#define COLUMNS (TILE / (int)sizeof(real)) // of the output per block
#define UNIT (LINE / (int)sizeof(real))    // elements of a LINE
#define ABOVE (UNIT - 1)                   // rows of the input above the tile
#define PIECE (16 / (int)sizeof(real))     // elements of 16 bytes
#define PIECES (PITCH / PIECE)

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
    const bool narrow = nx < ny / 2;
    // First column of the input, first row of the output; first row of the input, first column of the output.
    const int x0 = ((narrow ? b % across : b / down) * CLUSTER + blockIdx.x % CLUSTER) * WIDTH;
    const int y0 = (narrow ? b / across : b % down) * COLUMNS;

    // Where the tile's part of a row begins within a line of memory, and so in its place in shared memory.
    extern __shared__ __align__(16) real tile[]; // (row, place)
    const auto begin_of = [&](int row) {
        return (int)(((unsigned)(y0 - ABOVE + row) * nx + x0) % (PITCH - WIDTH));
    };

    // Load the rows of the tile and of what is above it, piece by piece.
    if (AT_ONCE == 16)
#pragma unroll
        for (int i = 0; i < (COLUMNS + ABOVE) * PIECES; i += BLOCK_X * BLOCK_Y) {
            const int row = (i + ty * BLOCK_X + tx) / PIECES;
            const int place = (i + ty * BLOCK_X + tx) % PIECES * PIECE;
            const int x = place - begin_of(row);
            const size_t element = (size_t)(y0 - ABOVE + row) * nx + x0 + x;
            if (row >= COLUMNS + ABOVE || (unsigned)(y0 - ABOVE + row) >= (unsigned)ny || x <= -PIECE ||
                x >= min(WIDTH, nx - x0))
                continue;
            if (element + PIECE <= (size_t)nx * ny)
                copy<16, FETCH>(tile + row * PITCH + place, in + element);
            else
                for (int j = 0; element + j < (size_t)nx * ny; ++j)
                    copy<sizeof(real)>(tile + row * PITCH + place + j, in + element + j);
        }

    // Else rows ty, ty + 16, …, 32 columns at a time.
#pragma unroll
    for (int y = 0; y < (AT_ONCE == 16 ? 0 : COLUMNS + ABOVE); y += BLOCK_Y)
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
                target[y - cut] = tile[(y + ABOVE - cut) * PITCH + begin_of(y + ABOVE - cut) + ty + x];
    }
}
