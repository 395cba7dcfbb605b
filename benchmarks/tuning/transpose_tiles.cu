// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A tile through shared memory, of any shape"
operation = "transpose"
idea = "Rows of a tile are read and written whole: everything about the tile is a parameter."
dtypes = ["f32"]

[parameters]
TILE_X = 32  # columns of the input per tile
TILE_Y = 32  # rows of the input per tile
LANES = 32   # threads side by side
ROWS = 8     # rows of threads
PAD = 1      # words that a row of the tile is longer by
VECTOR = 1   # elements that a thread moves at once, on either side
ORDER = 0    # 0: tiles along the input's rows, 1: down its columns, 2: in squares of eight

[candidates]
TILE_X = [16, 32, 64, 128]
TILE_Y = [16, 32, 64, 128]
LANES = [8, 16, 32]
ROWS = [4, 8, 16, 32]
PAD = [0, 1, 2]
VECTOR = [1, 2, 4]
ORDER = [0, 1]

[[launches]]
entry = "transpose_tiles"
arguments = ["nx", "ny", "in", "out"]
block = ["LANES", "ROWS"]
grid = ["cdiv(nx, TILE_X)", "cdiv(ny, TILE_Y)"]

[[require]]
condition = "nx % VECTOR == 0 and ny % VECTOR == 0"
because = "{id} moves VECTOR elements at once"

[[require]]
condition = "TILE_X % (LANES * VECTOR) == 0 and TILE_Y % (LANES * VECTOR) == 0"
because = "{id} gives whole rows of threads to the rows of a tile, on both sides"

[[require]]
condition = "TILE_X % ROWS == 0 and TILE_Y % ROWS == 0 and LANES * ROWS >= 64"
because = "{id} takes ROWS rows of a tile at once, with two warps at least"
*/

// VECTOR neighbours, moved at once.
struct __align__(4 * VECTOR) Words
{
    real word[VECTOR];
};

// The tile that a block works on, by the order in which tiles are taken.
static __device__ int2 tile_of()
{
    if (ORDER == 0)
        return make_int2(blockIdx.x, blockIdx.y);
    // Strips of eight tiles' height, each taken column by column.
    const int along = gridDim.x, number = blockIdx.y * along + blockIdx.x;
    const int strip = number / (8 * along), first = 8 * strip;
    const int height = min(8, (int)gridDim.y - first), rest = number - first * along;
    return make_int2(rest / height, first + rest % height);
}

extern "C" __global__ void __launch_bounds__(LANES *ROWS)
    transpose_tiles(int nx, int ny, const real *in, real *out)
{
    // Coordinates of the tile in the input, and of this thread in the tile.
    const int2 tile = tile_of();
    const int x0 = tile.x * TILE_X, y0 = tile.y * TILE_Y;
    const int lane = threadIdx.x * VECTOR, row = threadIdx.y;
    __shared__ real held[TILE_Y][TILE_X + PAD];

    // Load rows of the input.
#pragma unroll
    for (int y = row; y < TILE_Y; y += ROWS)
#pragma unroll
        for (int x = lane; x < TILE_X; x += LANES * VECTOR)
            if (x0 + x < nx && y0 + y < ny) {
                const Words words = *(const Words *)(in + (size_t)(y0 + y) * nx + x0 + x);
#pragma unroll
                for (int i = 0; i < VECTOR; ++i)
                    held[y][x + i] = words.word[i];
            }
    __syncthreads();

    // Write rows of the output.
#pragma unroll
    for (int x = row; x < TILE_X; x += ROWS)
#pragma unroll
        for (int y = lane; y < TILE_Y; y += LANES * VECTOR)
            if (x0 + x < nx && y0 + y < ny) {
                Words words;
#pragma unroll
                for (int i = 0; i < VECTOR; ++i)
                    words.word[i] = held[y + i][x];
                *(Words *)(out + (size_t)(x0 + x) * ny + y0 + y) = words;
            }
}
