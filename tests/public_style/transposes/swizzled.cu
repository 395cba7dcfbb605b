// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Columns of the tile swapped by exclusive or instead of padding; four rows a thread"
arguments = ["ny", "nx", "x", "y"]

[launch]
block = [32, 8]
grid = ["cdiv(nx, 32)", "cdiv(ny, 32)"]
*/
__global__ void swizzled(int ny, int nx, const float *__restrict__ x, float *__restrict__ y)
{
    __shared__ float tile[32][32];
    const int x0 = blockIdx.x * 32, y0 = blockIdx.y * 32;
#pragma unroll
    for (int r = threadIdx.y; r < 32; r += 8)
        if (x0 + threadIdx.x < nx && y0 + r < ny)
            tile[r][threadIdx.x ^ r] = x[(y0 + r) * nx + x0 + threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int r = threadIdx.y; r < 32; r += 8)
        if (y0 + threadIdx.x < ny && x0 + r < nx)
            y[(x0 + r) * ny + y0 + threadIdx.x] = tile[threadIdx.x][threadIdx.x ^ r];
}
