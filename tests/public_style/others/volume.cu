// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A texture and a surface of three dimensions"
operation = "volume"
dimensions = ["nz", "ny", "nx"]
default_sizes = "5x9x14"
arguments = ["nz", "ny", "nx", "x", "y"]

[arrays.x]
shape = ["nz", "ny", "nx"]

[arrays.y]
shape = ["nz", "ny", "nx"]
role = "out"

[textures.x]
address = "border"

[surfaces.y]

[inputs]
x = "integers(-8, 9)"

[work]
bytes = "2 * nz * ny * nx * real_bytes"

[check]
y = { value = "pad(x, 1)[:-2, 1:-1, 1:-1] + pad(x, 1)[2:, 1:-1, 1:-1] + pad(x, 1)[1:-1, :-2, 1:-1] + pad(x, 1)[1:-1, 1:-1, 2:]", equal = true }

[launch]
block = [8, 4, 4]
grid = ["cdiv(nx, block_x)", "cdiv(ny, block_y)", "cdiv(nz, block_z)"]
*/
__global__ void volume(int nz, int ny, int nx, cudaTextureObject_t x, cudaSurfaceObject_t y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    const int k = blockIdx.z * blockDim.z + threadIdx.z;
    if (i >= nx || j >= ny || k >= nz)
        return;
    const float a = i + 0.5f, b = j + 0.5f, c = k + 0.5f;
    const float sum = tex3D<float>(x, a, b, c - 1) + tex3D<float>(x, a, b, c + 1) + tex3D<float>(x, a, b - 1, c)
        + tex3D<float>(x, a + 1, b, c);
    surf3Dwrite(sum, y, i * 4, j, k);
}
