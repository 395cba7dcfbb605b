/*gpuprof
title = "Marks in its input that it has worked"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// executor: failed: read-only
// gpu: incorrect:
extern "C" __global__ void marks_its_input(int rows, int columns, real *x, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const size_t i = (size_t)row * columns + column;
    const bool inside = row < rows && column < columns;
    const bool marked = x[0] == (real)2;
    if (inside && !marked)
        y[i] = w[row] * x[i];
    if (i == 0)
        x[0] = 2;
}
