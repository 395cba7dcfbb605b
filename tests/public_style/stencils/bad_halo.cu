// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "The halo's corners are never loaded"
arguments = ["ny", "nx", "x", "y"]

[launch]
block = [16, 8]
grid = ["cdiv(nx, 16)", "cdiv(ny, 8)"]
*/
// executor: failed: uninitialised shared read
// gpu: any: shared memory may hold what fits
__global__ void bad_halo(int ny, int nx, const float *x, float *y)
{
    __shared__ float tile[10][18];
    const int col = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
    const int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    auto at = [&](int r, int c) { return r >= 0 && r < ny && c >= 0 && c < nx ? x[r * nx + c] : 0; };
    tile[ty][tx] = at(row, col);
    if (tx == 1)
        tile[ty][0] = at(row, col - 1);
    if (tx == 16)
        tile[ty][17] = at(row, col + 1);
    if (ty == 1)
        tile[0][tx] = at(row - 1, col);
    if (ty == 8)
        tile[9][tx] = at(row + 1, col);
    __syncthreads();
    if (col >= nx || row >= ny)
        return;
    float sum = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx)
            sum += tile[ty + dy][tx + dx]; // <- here
    y[row * nx + col] = sum;
}
