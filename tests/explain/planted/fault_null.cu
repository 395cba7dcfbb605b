/*gpuprof
title = "Reads through a null pointer"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// expect: illegal address: at address 0x0, where no array is
extern "C" __global__ void fault_null(int rows, int columns, const real *x, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns)
        return;
    const size_t i = (size_t)row * columns + column;
    const real *missing = reinterpret_cast<const real *>((unsigned long long)(columns >> 20));
    y[i] = missing[i] * w[column]; // <- here
}
