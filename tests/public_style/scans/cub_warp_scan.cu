// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "cub::WarpScan, a warp a row"
arguments = ["rows", "columns", "x", "y"]

[launch]
block = [32, 2]
grid = ["cdiv(rows, block_y)"]
*/
#include <cub/warp/warp_scan.cuh>

__global__ void cub_warp_scan(int rows, int columns, const float *x, float *y)
{
    __shared__ typename cub::WarpScan<float>::TempStorage temp[2];
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows)
        return;
    float carry = 0;
    for (int first = 0; first < columns; first += 32) {
        const int i = first + threadIdx.x;
        float v = i < columns ? x[row * columns + i] : 0, total;
        cub::WarpScan<float>(temp[threadIdx.y]).InclusiveSum(v, v, total);
        __syncwarp();
        if (i < columns)
            y[row * columns + i] = carry + v;
        carry += total;
    }
}
