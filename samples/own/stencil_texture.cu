// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Neighbours through a texture"
operation = "stencil"
operation_title = "Five-point stencil"
dimensions = ["ny", "nx"]
default_sizes = "2048"
idea = "The array is read through a texture, whose border is zero: no thread asks whether it stands at an edge, and the texture's cache keeps what lies near in both directions."
arguments = ["ny", "nx", "before", "after"]

[arrays.before]
shape = ["ny", "nx"]

[arrays.after]
shape = ["ny", "nx"]
role = "out"

[textures.before]
address = "border"

[inputs]
before = "uniform(0, 1)"

[work]
flops = "4 * ny * nx"
bytes = "2 * ny * nx * real_bytes"

[check] # zeros lie beyond the edges
after = "(pad(before, 1)[:-2, 1:-1] + pad(before, 1)[2:, 1:-1] + pad(before, 1)[1:-1, :-2] + pad(before, 1)[1:-1, 2:]) / 4"
relative = "4 * u"

[launch]
block = [32, 8]
any_block = true
grid = ["cdiv(nx, block_x)", "cdiv(ny, block_y)"]
*/

extern "C" __global__ void stencil_texture(int ny, int nx, cudaTextureObject_t before, real *after)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= nx || y >= ny)
        return;
    const float column = x + 0.5f, row = y + 0.5f; // the middle of a texel
    const real above = tex2D<float>(before, column, row - 1);
    const real below = tex2D<float>(before, column, row + 1);
    const real left = tex2D<float>(before, column - 1, row);
    const real right = tex2D<float>(before, column + 1, row);
    after[(size_t)y * nx + x] = (above + below + left + right) / 4;
}
