// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "cub::WarpReduce: a warp a row, in tiles of eight lanes at last"
arguments = ["rows", "columns", "x", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(rows, block_y)"]
*/
#include <cub/warp/warp_reduce.cuh>

__global__ void cub_warp_reduce(int rows, int columns, const float *x, float *y)
{
    using Narrow = cub::WarpReduce<float, 8>;
    using Wide = cub::WarpReduce<float>;
    __shared__ typename Wide::TempStorage wide[4];
    __shared__ typename Narrow::TempStorage narrow[4][4];
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows)
        return; // a whole warp
    float v = 0;
    for (int i = threadIdx.x; i < columns; i += 32)
        v += x[row * columns + i];
    const float eighth = Narrow(narrow[threadIdx.y][threadIdx.x / 8]).Sum(v);
    const float total = Wide(wide[threadIdx.y]).Sum(threadIdx.x % 8 == 0 ? eighth : 0.f);
    if (threadIdx.x == 0)
        y[row] = total;
}
