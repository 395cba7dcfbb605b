// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// Two launches: one writes a surface of the kernel's own, the other reads it as a texture.
/*gpuprof
operation = "blur"
dimensions = ["ny", "nx"]
default_sizes = "40x70"
[arrays.x]
shape = ["ny", "nx"]
[arrays.y]
shape = ["ny", "nx"]
role = "out"
[inputs]
x = "integers(0, 100)"
[work]
bytes = "2 * ny * nx * real_bytes"
[check]
y = "(pad(x, 1)[1:-1, :-2] + 2 * x + pad(x, 1)[1:-1, 2:]) / 4"
equal = true
[workspace.half]
shape = ["ny", "nx"]
[surfaces.half_out]
array = "half"
[textures.half]
filter = "linear"
address = "border"
[[launches]]
entry = "copy"
arguments = ["ny", "nx", "x", "half_out"]
block = ["64"]
grid = ["cdiv(nx, block_x)", "ny"]
[[launches]]
entry = "mean"
arguments = ["ny", "nx", "half", "y"]
block = ["64"]
grid = ["cdiv(nx, block_x)", "ny"]
*/
extern "C" __global__ void copy(int ny, int nx, const float *x, cudaSurfaceObject_t half)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y;
    if (i < nx)
        surf2Dwrite(x[j * nx + i], half, 4 * i, j);
}

// The middle of two texels is their mean.
extern "C" __global__ void mean(int ny, int nx, cudaTextureObject_t half, float *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y;
    if (i < nx)
        y[j * nx + i] = (tex2D<float>(half, i, j + 0.5f) + tex2D<float>(half, i + 1, j + 0.5f)) / 2;
}
