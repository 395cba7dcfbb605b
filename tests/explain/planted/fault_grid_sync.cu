/*gpuprof
title = "Waits for its grid in a launch that is not cooperative"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// expect: trap: executes a trap, as grid.sync() does where its [launch] does not say `cooperative = true`
#include <cooperative_groups.h>

extern "C" __global__ void fault_grid_sync(int rows, int columns, const real *x, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const size_t i = (size_t)row * columns + column;
    const bool inside = row < rows && column < columns;
    if (inside)
        y[i] = x[i];
    cooperative_groups::this_grid().sync(); // <- here
    if (inside)
        y[i] *= w[column];
}
