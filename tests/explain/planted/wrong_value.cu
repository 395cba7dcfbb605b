/*gpuprof
title = "One element is another number"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// expect: wrong store: thread (7, 3, 0) of block (0, 0, 0) stores 5 to y[3, 7]
extern "C" __global__ void wrong_value(int rows, int columns, const real *x, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns)
        return;
    const size_t i = (size_t)row * columns + column;
    y[i] = row == 3 && column == 7 ? 5 : x[i] * w[column]; // <- here
}
