/*gpuprof
title = "Waits in each launch for flags of an epoch that goes on"
arguments = ["rows", "columns", "x", "w", "y", "total"]

[launch]
block = [128]
grid = ["rows"]
*/

#include "sum_block.cuh"

__device__ unsigned epoch[64], reached[64];

extern "C" __global__ void own_flags(int rows, int columns, const real *x, const real *w, real *y, real *total)
{
    const int row = blockIdx.x;
    __shared__ unsigned now;
    if (threadIdx.x == 0) {
        now = ++epoch[row % 64];
        reached[row % 64] = now;
    }
    __syncthreads();
    if (reached[row % 64] != now)
        return;
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
