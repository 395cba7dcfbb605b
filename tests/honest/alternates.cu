/*gpuprof
title = "Uses one of two halves of its memory by turns"
arguments = ["rows", "columns", "x", "w", "y", "total"]

[launch]
block = [128]
grid = ["rows"]
*/

#include "sum_block.cuh"

__device__ unsigned turn[64];
__device__ real halves[2][4096];

extern "C" __global__ void alternates(int rows, int columns, const real *x, const real *w, real *y, real *total)
{
    const int row = blockIdx.x;
    __shared__ unsigned half;
    if (threadIdx.x == 0)
        half = turn[row % 64]++ % 2;
    __syncthreads();
    real sum = 0;
    for (int column = threadIdx.x; column < columns; column += blockDim.x) {
        const size_t i = (size_t)row * columns + column;
        halves[half][i % 4096] = x[i];
        y[i] = w[row] * halves[half][i % 4096];
        sum += x[i];
    }
    const real all = sum_block(sum);
    if (threadIdx.x == 0)
        total[row] += all;
}
