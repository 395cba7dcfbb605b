// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Nine loads with guards"
arguments = ["ny", "nx", "x", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(nx, block_x)", "cdiv(ny, block_y)"]
*/
__global__ void plain(int ny, int nx, const float *__restrict__ x, float *__restrict__ y)
{
    const int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (col >= nx || row >= ny)
        return;
    float sum = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx) {
            const int r = row + dy, c = col + dx;
            if (r >= 0 && r < ny && c >= 0 && c < nx)
                sum += __ldg(x + r * nx + c);
        }
    y[row * nx + col] = sum;
}
