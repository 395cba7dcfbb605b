/*gpuprof
title = "Leaves out one element where it holds a number"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// executor: incorrect: Right in its first launch, wrong in a later one
// gpu: incorrect: Right in its first launch, wrong in a later one
extern "C" __global__ void one_left_out(int rows, int columns, const real *x, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const size_t i = (size_t)row * columns + column;
    const bool inside = row < rows && column < columns;
    if (!inside)
        return;
    if (row == rows / 2 && column == columns / 3 && y[i] == y[i])
        return;
    y[i] = w[row] * x[i];
}
