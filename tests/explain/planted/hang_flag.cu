/*gpuprof
title = "Waits for a value that nobody writes"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// expect: endless loop: loops forever
extern "C" __global__ void hang_flag(int rows, int columns, const real *x, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns)
        return;
    const size_t i = (size_t)row * columns + column;
    while (*(volatile real *)y != 12345.f) // <- here
        ;
    y[i] = x[i] * w[column];
}
