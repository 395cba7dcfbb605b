/*gpuprof
title = "Writes full tiles only"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// expect: never written: thread (31, 0, 0) of block (3, 0, 0) wrote y[0, 127], the nearest; it depends on lines 12, 13, 16 and 17
extern "C" __global__ void wrong_tail(int rows, int columns, const real *x, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns)
        return;
    const size_t i = (size_t)row * columns + column;
    if (column < columns / 32 * 32)
        y[i] = x[i] * w[column]; // <- here
}
