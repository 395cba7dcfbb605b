// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "__reduce_add_sync of integers, and ballots for a count"
arguments = ["rows", "columns", "x", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(rows, block_y)"]
*/
__global__ void redux(int rows, int columns, const float *x, float *y)
{
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows)
        return;
    int sum = 0, odd = 0;
    for (int base = 0; base < columns; base += 32) {
        const int i = base + threadIdx.x;
        const int v = i < columns ? (int)x[row * columns + i] : 0;
        odd += __popc(__ballot_sync(~0u, v & 1));
        sum += (v - (v & 1)) / 2;
    }
    const int halves = __reduce_add_sync(~0u, sum);
    if (threadIdx.x == 0)
        y[row] = 2 * halves + odd;
}
