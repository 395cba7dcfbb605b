/*gpuprof
title = "Leaves out one row more in each launch"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// executor: incorrect: Right in its first launch, wrong in a later one
// gpu: incorrect: Right in its first launch, wrong in a later one
#include "launches_before.cuh"

extern "C" __global__ void less_and_less(int rows, int columns, const real *x, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const size_t i = (size_t)row * columns + column;
    const bool inside = row < rows && column < columns;
    if ((unsigned)row < rows - launches_before() && inside)
        y[i] = w[row] * x[i];
}
