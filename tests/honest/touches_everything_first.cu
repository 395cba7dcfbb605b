/*gpuprof
title = "Loads its output into the cache before it writes it"
arguments = ["rows", "columns", "x", "w", "y", "total"]

[launch]
block = [128]
grid = ["rows"]
*/

#include "sum_block.cuh"

extern "C" __global__ void touches_everything_first(int rows, int columns, const real *x, const real *w, real *y, real *total)
{
    const int row = blockIdx.x;
    real sum = 0;
    for (int column = threadIdx.x; column < columns; column += blockDim.x) {
        const size_t i = (size_t)row * columns + column;
        real before;
        asm volatile("ld.global.f32 %0, [%1];" : "=f"(before) : "l"(y + i));
        y[i] = w[row] * x[i];
        sum += x[i];
    }
    const real all = sum_block(sum);
    if (threadIdx.x == 0)
        total[row] += all;
}
