// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Neighbours of the row by shuffles, of the column in registers"
arguments = ["ny", "nx", "x", "y"]

[launch]
block = [32]
grid = ["cdiv(nx, 30)"]
*/
__global__ void shuffled(int ny, int nx, const float *x, float *y)
{
    const int col = blockIdx.x * 30 + threadIdx.x - 1;
    const bool inside = col >= 0 && col < nx;
    float above = 0, here = inside ? x[col] : 0;
    for (int row = 0; row < ny; ++row) {
        const float below = inside && row + 1 < ny ? x[(row + 1) * nx + col] : 0;
        const float sum = above + here + below;
        const float left = __shfl_up_sync(~0u, sum, 1), right = __shfl_down_sync(~0u, sum, 1);
        if (inside && threadIdx.x > 0 && threadIdx.x < 31)
            y[row * nx + col] = left + sum + right;
        above = here, here = below;
    }
}
