// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Rows first, into workspace, then columns with a running sum"

[workspace.half]
shape = ["ny", "nx"]

[[launches]]
entry = "along_rows"
arguments = ["nx", "x", "half"]
block = [64]
grid = ["ny"]

[[launches]]
entry = "along_columns"
arguments = ["ny", "nx", "half", "y"]
block = [32]
grid = ["cdiv(nx, block_x)"]
*/
__global__ void along_rows(int nx, const float *x, float *half)
{
    const float *row = x + blockIdx.x * nx;
    for (int i = threadIdx.x; i < nx; i += blockDim.x)
        half[blockIdx.x * nx + i] = (i > 0 ? row[i - 1] : 0) + row[i] + (i + 1 < nx ? row[i + 1] : 0);
}

__global__ void along_columns(int ny, int nx, const float *half, float *y)
{
    const int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (col >= nx)
        return;
    float sum = half[col];
    for (int row = 0; row < ny; ++row) {
        if (row + 1 < ny)
            sum += half[(row + 1) * nx + col];
        if (row > 1)
            sum -= half[(row - 2) * nx + col];
        y[row * nx + col] = sum;
    }
}
