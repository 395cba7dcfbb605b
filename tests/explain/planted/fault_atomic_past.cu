/*gpuprof
title = "Counts far behind the output"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// expect: illegal address: updates 4 bytes past the end of y
extern "C" __global__ void fault_atomic_past(int rows, int columns, const real *x, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns)
        return;
    const size_t i = (size_t)row * columns + column;
    y[i] = x[i] * w[column];
    atomicAdd(y + i + (1ll << 32), 1); // <- here
}
