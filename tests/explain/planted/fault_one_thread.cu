/*gpuprof
title = "One thread of one block goes astray"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// expect: illegal address: thread (3, 2, 0) of block (2, 1, 0) reads 4 bytes past the end of x
extern "C" __global__ void fault_one_thread(int rows, int columns, const real *x, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns)
        return;
    const size_t i = (size_t)row * columns + column;
    const bool astray = blockIdx.x == 2 && blockIdx.y == 1 && threadIdx.x == 3 && threadIdx.y == 2;
    y[i] = x[i + (astray ? (1ll << 32) : 0)] * w[column]; // <- here
}
