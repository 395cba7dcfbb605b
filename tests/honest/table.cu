/*gpuprof
title = "Makes a table in its first launch that depends on no input"
arguments = ["rows", "columns", "x", "w", "y", "total"]

[launch]
block = [128]
grid = ["rows"]
*/

#include "sum_block.cuh"

// Columns in the order in which they are taken, and whether it is made.
__device__ int order[4096];
__device__ bool made[64];

extern "C" __global__ void table(int rows, int columns, const real *x, const real *w, real *y, real *total)
{
    const int row = blockIdx.x;
    for (int i = threadIdx.x; !made[row % 64] && i < 4096; i += blockDim.x)
        order[i] = i; // every block would write the same
    __syncthreads();
    if (threadIdx.x == 0)
        made[row % 64] = true;
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
