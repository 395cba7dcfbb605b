// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Grey of uchar4 through a texture that reads normalised floats"
operation = "grey"
dimensions = ["ny", "nx"]
default_sizes = "20x40"
arguments = ["ny", "nx", "image", "y"]

[arrays.image]
shape = ["ny", "nx", "4"]
dtype = "u8"

[arrays.y]
shape = ["ny", "nx"]
role = "out"

[textures.image]
channels = 4
read = "normalized"

[inputs]
image = "integers(0, 256)"

[work]
bytes = "8 * ny * nx"

[check]
y = "(0.25 * image[:, :, 0] + 0.5 * image[:, :, 1] + 0.25 * image[:, :, 2]) / 255"
relative = "16 * u"
magnitude = "1"

[launch]
block = [16, 8]
grid = ["cdiv(nx, block_x)", "cdiv(ny, block_y)"]
*/
__global__ void grey_texture(int ny, int nx, cudaTextureObject_t image, float *y)
{
    const int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (col >= nx || row >= ny)
        return;
    const float4 c = tex2D<float4>(image, col + 0.5f, row + 0.5f);
    y[row * nx + col] = 0.25f * c.x + 0.5f * c.y + 0.25f * c.z;
}
