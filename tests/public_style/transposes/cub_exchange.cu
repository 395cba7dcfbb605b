// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "cub::WarpExchange, striped to blocked"
arguments = ["ny", "nx", "x", "y"]

[launch]
block = [32]
grid = ["cdiv(nx, 4)", "cdiv(ny, 32)"]
*/
#include <cub/warp/warp_exchange.cuh>

// 32 rows of 4: lane l first holds elements l, l + 32, … of the tile, then row l.
__global__ void cub_exchange(int ny, int nx, const float *x, float *y)
{
    using Exchange = cub::WarpExchange<float, 4, 32>;
    __shared__ typename Exchange::TempStorage temp;
    float v[4];
    for (int k = 0; k < 4; ++k) {
        const int e = threadIdx.x + 32 * k, row = blockIdx.y * 32 + e / 4, col = blockIdx.x * 4 + e % 4;
        v[k] = row < ny && col < nx ? x[row * nx + col] : 0;
    }
    Exchange(temp).StripedToBlocked(v, v);
    const int row = blockIdx.y * 32 + threadIdx.x;
    for (int k = 0; k < 4; ++k)
        if (row < ny && blockIdx.x * 4 + k < nx)
            y[(blockIdx.x * 4 + k) * ny + row] = v[k];
}
