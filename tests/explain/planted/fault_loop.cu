/*gpuprof
title = "Leaves the input in the second turn of a loop"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// expect: illegal address: reads 4 bytes past the end of x
extern "C" __global__ void fault_loop(int rows, int columns, const real *x, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns)
        return;
    const size_t i = (size_t)row * columns + column;
    real sum = 0;
    for (long long k = 0; k < 3; ++k)
        sum += x[i + (k << 32)]; // <- here
    y[i] = sum * w[column];
}
