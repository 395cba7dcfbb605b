/*gpuprof
title = "One warp waits at another barrier than the rest"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// expect: barrier: never reaches the barrier
extern "C" __global__ void hang_barrier(int rows, int columns, const real *x, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (threadIdx.y == 2)
        asm volatile("bar.sync 1;" ::: "memory"); // <- here
    else
        asm volatile("bar.sync 0;" ::: "memory"); // <- here
    if (row < rows && column < columns)
        y[(size_t)row * columns + column] = x[(size_t)row * columns + column] * w[column];
}
