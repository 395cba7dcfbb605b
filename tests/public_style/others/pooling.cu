// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "The greatest of each 2 x 2, by vector loads and fmaxf"
operation = "pooling"
dimensions = ["ny", "nx"]
default_sizes = "22x30"
arguments = ["ny", "nx", "x", "y"]

[arrays.x]
shape = ["2 * ny", "2 * nx"]

[arrays.y]
shape = ["ny", "nx"]
role = "out"

[work]
bytes = "5 * ny * nx * real_bytes"

[check]
y = { value = "maximum(maximum(x[::2, ::2], x[1::2, ::2]), maximum(x[::2, 1::2], x[1::2, 1::2]))", equal = true }

[launch]
block = [32, 2]
grid = ["cdiv(nx, block_x)", "cdiv(ny, block_y)"]
*/
__global__ void pooling(int ny, int nx, const float2 *x, float *y)
{
    const int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (col < nx && row < ny) {
        const float2 a = x[2 * row * nx + col], b = x[(2 * row + 1) * nx + col];
        y[row * nx + col] = fmaxf(fmaxf(a.x, a.y), fmaxf(b.x, b.y));
    }
}
