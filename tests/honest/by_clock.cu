/*gpuprof
title = "Starts each row where the clock says"
arguments = ["rows", "columns", "x", "w", "y", "total"]

[launch]
block = [128]
grid = ["rows"]
*/

#include "sum_block.cuh"

extern "C" __global__ void by_clock(int rows, int columns, const real *x, const real *w, real *y, real *total)
{
    const int row = blockIdx.x;
    __shared__ int first; // one for the whole block
    if (threadIdx.x == 0)
        first = (int)(clock64() % columns);
    __syncthreads();
    real sum = 0;
    for (int column = threadIdx.x; column < columns; column += blockDim.x) {
        const size_t i = (size_t)row * columns + column;
        const size_t at = (size_t)row * columns + (column + first) % columns;
        y[at] = w[row] * x[at];
        sum += x[i];
    }
    const real all = sum_block(sum);
    if (threadIdx.x == 0)
        total[row] += all;
}
