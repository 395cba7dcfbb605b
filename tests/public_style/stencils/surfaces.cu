// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Surfaces for reading and writing, with cudaBoundaryModeZero"
arguments = ["ny", "nx", "x", "y"]

[surfaces.x]
kind = "2d"

[surfaces.y]
kind = "2d"

[launch]
block = [32, 8]
grid = ["cdiv(nx, block_x)", "cdiv(ny, block_y)"]
*/
__global__ void surfaces(int ny, int nx, cudaSurfaceObject_t x, cudaSurfaceObject_t y)
{
    const int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (col >= nx || row >= ny)
        return;
    float sum = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx) {
            float v;
            surf2Dread(&v, x, (col + dx) * 4, row + dy, cudaBoundaryModeZero);
            sum += v;
        }
    surf2Dwrite(sum, y, col * 4, row);
}
