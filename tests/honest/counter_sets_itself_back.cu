/*gpuprof
title = "Takes rows by a counter that wraps around at the last"
arguments = ["rows", "columns", "x", "w", "y", "total"]

[launch]
block = [128]
grid = ["rows"]
*/

#include "sum_block.cuh"

__device__ unsigned taken;

extern "C" __global__ void counter_sets_itself_back(int rows, int columns, const real *x, const real *w, real *y, real *total)
{
    __shared__ unsigned ticket;
    if (threadIdx.x == 0)
        ticket = atomicInc(&taken, gridDim.x - 1);
    __syncthreads();
    const int row = ticket;
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
