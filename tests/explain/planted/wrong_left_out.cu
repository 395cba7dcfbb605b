/*gpuprof
title = "Leaves one column out"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// expect: never written: no thread wrote y[0, 5]; block (0, 0, 0) wrote y[0, 4] and y[0, 6] beside it
extern "C" __global__ void wrong_left_out(int rows, int columns, const real *x, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns)
        return;
    const size_t i = (size_t)row * columns + column;
    if (column != 5)
        y[i] = x[i] * w[column]; // <- here
}
