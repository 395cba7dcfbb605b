// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Takes the next row's first element for the right neighbour of the last"
arguments = ["ny", "nx", "x", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(nx, block_x)", "cdiv(ny, block_y)"]
*/
// both: incorrect
__global__ void bad_edge(int ny, int nx, const float *x, float *y)
{
    const int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (col >= nx || row >= ny)
        return;
    float sum = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx) {
            const int i = (row + dy) * nx + col + dx;
            if (i >= 0 && i < nx * ny)
                sum += x[i];
        }
    y[row * nx + col] = sum;
}
