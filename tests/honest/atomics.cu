/*gpuprof
title = "Adds each element to its total"
arguments = ["rows", "columns", "x", "w", "y", "total"]

[launch]
block = [128]
grid = ["rows"]
*/

#include "sum_block.cuh"

extern "C" __global__ void atomics(int rows, int columns, const real *x, const real *w, real *y, real *total)
{
    const int row = blockIdx.x;
    real sum = 0;
    for (int column = threadIdx.x; column < columns; column += blockDim.x) {
        const size_t i = (size_t)row * columns + column;
        y[i] = w[row] * x[i];
        atomicAdd(&total[row], x[i]);
    }
    const real all = sum_block(sum);
    (void)all;
}
