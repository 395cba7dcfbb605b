// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A tile, cg::sync, and the tile turned"
arguments = ["y", "x", "nx", "ny"]

[launch]
block = [16, 16]
grid = ["cdiv(nx, 16)", "cdiv(ny, 16)"]
*/
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
#define TILE_DIM 16
#define BLOCK_ROWS 16

__global__ void cg_sync(float *odata, const float *idata, int width, int height)
{
    cg::thread_block cta = cg::this_thread_block();
    __shared__ float tile[TILE_DIM][TILE_DIM + 1];
    int xIndex = blockIdx.x * TILE_DIM + threadIdx.x, yIndex = blockIdx.y * TILE_DIM + threadIdx.y;
    for (int i = 0; i < TILE_DIM; i += BLOCK_ROWS)
        if (xIndex < width && yIndex + i < height)
            tile[threadIdx.y + i][threadIdx.x] = idata[(yIndex + i) * width + xIndex];
    cg::sync(cta);
    xIndex = blockIdx.y * TILE_DIM + threadIdx.x, yIndex = blockIdx.x * TILE_DIM + threadIdx.y;
    for (int i = 0; i < TILE_DIM; i += BLOCK_ROWS)
        if (xIndex < height && yIndex + i < width)
            odata[(yIndex + i) * height + xIndex] = tile[threadIdx.x][threadIdx.y + i];
}
