// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Rows and columns changed places in the guard"
arguments = ["ny", "nx", "x", "y"]

[launch]
block = [8, 8]
grid = ["cdiv(nx, block_x)", "cdiv(ny, block_y)"]
*/
// executor: failed: out of bounds
// gpu: refused
__global__ void bad_swapped(int ny, int nx, const float *x, float *y)
{
    const int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (col >= ny || row >= nx)
        return;
    float sum = 0;
    for (int r = max(row - 1, 0); r <= min(row + 1, ny - 1); ++r)
        for (int c = max(col - 1, 0); c <= min(col + 1, nx - 1); ++c)
            sum += x[r * nx + c];
    y[row * nx + col] = sum; // <- here
}
