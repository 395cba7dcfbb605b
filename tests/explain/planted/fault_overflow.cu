/*gpuprof
title = "An index overflows 32 bits"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// expect: illegal address: bytes past the end of x
extern "C" __global__ void fault_overflow(int rows, int columns, const real *x, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns)
        return;
    const size_t i = (size_t)row * columns + column;
    const unsigned wrapped = (unsigned)(row - 1) * columns; // row 0 has no row before it
    y[i] = x[wrapped + column] * w[column]; // <- here
}
