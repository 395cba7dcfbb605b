// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "tex1Dfetch from linear memory, and a surface that is written"
arguments = ["n", "x", "y"]

[textures.x]
kind = "1d"
memory = "linear"

[surfaces.y]
kind = "1d"

[launch]
block = [128]
grid = ["cdiv(n, block_x)"]
*/
__global__ void texture_fetch(int n, cudaTextureObject_t x, cudaSurfaceObject_t y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const float v = tex1Dfetch<float>(x, i);
    surf1Dwrite(1 + v * (2 + v * (3 + v * 4)), y, i * (int)sizeof(float));
}
