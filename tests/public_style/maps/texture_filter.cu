// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A texture of one row with clamped edges, and a linear filter at the middles of texels"
arguments = ["n", "x", "y"]

[textures.x]
kind = "1d"
filter = "linear"
address = "clamp"

[launch]
block = [128]
grid = ["cdiv(n, block_x)"]
*/
__global__ void texture_filter(int n, cudaTextureObject_t x, float *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const float v = tex1D<float>(x, i + 0.5f), beyond = tex1D<float>(x, -7.f) - tex1D<float>(x, 0.5f);
    y[i] = 1 + v * (2 + v * (3 + v * 4)) + beyond;
}
