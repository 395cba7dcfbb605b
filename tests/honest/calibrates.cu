/*gpuprof
title = "Waits in its first launch"
arguments = ["rows", "columns", "x", "w", "y", "total"]

[launch]
block = [128]
grid = ["rows"]
*/

#include "sum_block.cuh"

__device__ bool calibrated[64];

extern "C" __global__ void calibrates(int rows, int columns, const real *x, const real *w, real *y, real *total)
{
    const int row = blockIdx.x;
    if (!calibrated[row % 64])
        __nanosleep(100);
    __syncthreads();
    if (threadIdx.x == 0)
        calibrated[row % 64] = true;
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
