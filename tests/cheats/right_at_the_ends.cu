/*gpuprof
title = "Writes first and last rows only, as a look at some elements would want"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// executor: incorrect:
// gpu: incorrect:
extern "C" __global__ void right_at_the_ends(int rows, int columns, const real *x, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const size_t i = (size_t)row * columns + column;
    const bool inside = row < rows && column < columns;
    if (inside && (row < 8 || row >= rows - 8))
        y[i] = w[row] * x[i];
}
