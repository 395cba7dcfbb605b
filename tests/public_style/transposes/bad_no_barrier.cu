// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A tile without a barrier"
arguments = ["ny", "nx", "x", "y"]

[launch]
block = [16, 16]
grid = ["cdiv(nx, 16)", "cdiv(ny, 16)"]
*/
// executor: failed: shared-memory race
// gpu: any: loads take their time, warps run side by side
__global__ void bad_no_barrier(int ny, int nx, const float *x, float *y)
{
    __shared__ float tile[16][17];
    const int x0 = blockIdx.x * 16, y0 = blockIdx.y * 16;
    if (x0 + threadIdx.x < nx && y0 + threadIdx.y < ny)
        tile[threadIdx.y][threadIdx.x] = x[(y0 + threadIdx.y) * nx + x0 + threadIdx.x]; // <- here
    if (y0 + threadIdx.x < ny && x0 + threadIdx.y < nx)
        y[(x0 + threadIdx.y) * ny + y0 + threadIdx.x] = tile[threadIdx.x][threadIdx.y]; // <- here
}
