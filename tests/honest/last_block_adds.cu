/*gpuprof
title = "Parts of rows, and the last block of each adds them up"
arguments = ["rows", "columns", "x", "w", "y", "total", "parts"]

[launch]
block = [128]
grid = ["4", "rows"]

[workspace.parts]
shape = ["rows", "5"] # the last of each row is never read
*/

#include "sum_block.cuh"

__device__ unsigned done[4096];

extern "C" __global__ void last_block_adds(int rows, int columns, const real *x, const real *w, real *y, real *total, real *parts)
{
    const int row = blockIdx.y;
    real sum = 0;
    for (int column = blockIdx.x * blockDim.x + threadIdx.x; column < columns; column += gridDim.x * blockDim.x) {
        const size_t i = (size_t)row * columns + column;
        y[i] = w[row] * x[i];
        sum += x[i];
    }
    const real all = sum_block(sum);
    if (threadIdx.x != 0)
        return;
    parts[5 * row + blockIdx.x] = all;
    __threadfence();
    if (atomicInc(&done[row], gridDim.x - 1) != gridDim.x - 1)
        return;
    __threadfence();
    for (int part = 0; part < gridDim.x; ++part)
        total[row] += parts[5 * row + part];
}
