/*gpuprof
title = "Waits at a barrier for a part of a warp"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// expect: barrier: which are not whole warps of 32
extern "C" __global__ void fault_barrier_count(int rows, int columns, const real *x, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    asm volatile("bar.sync 1, %0;" ::"r"(blockDim.x * blockDim.y - 28) : "memory"); // <- here
    if (row < rows && column < columns)
        y[(size_t)row * columns + column] = x[(size_t)row * columns + column] * w[column];
}
