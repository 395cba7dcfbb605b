/*gpuprof
title = "Takes memory, and gives it back"
arguments = ["rows", "columns", "x", "w", "y", "total"]

[launch]
block = [128]
grid = ["rows"]
*/

#include "sum_block.cuh"

extern "C" __global__ void heap(int rows, int columns, const real *x, const real *w, real *y, real *total)
{
    const int row = blockIdx.x;
    __shared__ real *taken;
    if (threadIdx.x == 0)
        taken = (real *)malloc(sizeof(real) * blockDim.x);
    __syncthreads();
    if (taken == nullptr)
        return;
    real sum = 0;
    for (int column = threadIdx.x; column < columns; column += blockDim.x) {
        const size_t i = (size_t)row * columns + column;
        taken[threadIdx.x] = x[i];
        y[i] = w[row] * taken[threadIdx.x];
        sum += x[i];
    }
    const real all = sum_block(sum);
    if (threadIdx.x == 0) {
        total[row] += all;
        free(taken);
    }
}
