/*gpuprof
title = "A loop steps over its end"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// expect: endless loop: still runs after
extern "C" __global__ void hang_loop(int rows, int columns, const real *x, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns)
        return;
    const size_t i = (size_t)row * columns + column;
    for (unsigned k = 1; k != 100; k += 2) // <- here
        *(volatile real *)(y + i) = x[i] * w[column]; // <- here
}
