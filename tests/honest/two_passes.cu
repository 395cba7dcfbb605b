/*gpuprof
title = "Copies, and scales its output in place"

[[launches]]
entry = "copies"
arguments = ["rows", "columns", "x", "y"]
block = [128]
grid = ["rows"]

[[launches]]
entry = "scales_in_place"
arguments = ["rows", "columns", "x", "w", "y", "total"]
block = [128]
grid = ["rows"]
*/

#include "sum_block.cuh"

extern "C" __global__ void copies(int rows, int columns, const real *x, real *y)
{
    for (int column = threadIdx.x; column < columns; column += blockDim.x)
        y[(size_t)blockIdx.x * columns + column] = x[(size_t)blockIdx.x * columns + column];
}

extern "C" __global__ void scales_in_place(int rows, int columns, const real *x, const real *w, real *y, real *total)
{
    const int row = blockIdx.x;
    real sum = 0;
    for (int column = threadIdx.x; column < columns; column += blockDim.x) {
        const size_t i = (size_t)row * columns + column;
        y[i] = w[row] * y[i];
        sum += x[i];
    }
    const real all = sum_block(sum);
    if (threadIdx.x == 0)
        total[row] += all;
}
