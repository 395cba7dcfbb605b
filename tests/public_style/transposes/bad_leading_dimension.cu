// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Rows of the result as long as those of the matrix"
arguments = ["ny", "nx", "x", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(nx, 32)", "cdiv(ny, 4)"]
*/
// executor: failed: out of bounds
// gpu: refused
__global__ void bad_leading_dimension(int ny, int nx, const float *x, float *y)
{
    const int col = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 4 + threadIdx.y;
    if (col < nx && row < ny)
        y[col * nx + row] = x[row * nx + col]; // <- here
}
