/*gpuprof
title = "Writes to an input"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// expect: write to an input: writes 4 bytes of x, element 0 of
extern "C" __global__ void wrong_input(int rows, int columns, const real *x, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns)
        return;
    const size_t i = (size_t)row * columns + column;
    y[i] = x[i] * w[column];
    if (i == 0)
        const_cast<real *>(x)[i] = 7; // <- here
}
