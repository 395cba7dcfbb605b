// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A texture whose border is zero"
arguments = ["ny", "nx", "x", "y"]

[textures.x]
address = "border"

[launch]
block = [16, 16]
grid = ["cdiv(nx, block_x)", "cdiv(ny, block_y)"]
*/
__global__ void texture_2d(int ny, int nx, cudaTextureObject_t x, float *y)
{
    const int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (col >= nx || row >= ny)
        return;
    float sum = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx)
            sum += tex2D<float>(x, col + dx + 0.5f, row + dy + 0.5f);
    y[row * nx + col] = sum;
}
