/*gpuprof
title = "Counts how many rows each SM takes"
arguments = ["rows", "columns", "x", "w", "y", "total"]

[launch]
block = [128]
grid = ["rows"]
*/

#include "sum_block.cuh"

__device__ unsigned rows_of_sm[1024];

extern "C" __global__ void by_sm(int rows, int columns, const real *x, const real *w, real *y, real *total)
{
    const int row = blockIdx.x;
    if (threadIdx.x == 0) {
        unsigned sm;
        asm volatile("mov.u32 %0, %smid;" : "=r"(sm));
        atomicAdd(&rows_of_sm[sm % 1024], 1u);
    }
    real sum = 0;
    for (int column = threadIdx.x; column < columns; column += blockDim.x) {
        const size_t i = (size_t)row * columns + column;
        y[i] = w[row] * x[i];
        sum += x[i];
    }
    const real all = sum_block(sum);
    if (threadIdx.x == 0)
        total[row] += all;
}
