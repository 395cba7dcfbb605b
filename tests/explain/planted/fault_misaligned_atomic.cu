/*gpuprof
title = "Counts at an odd byte"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// expect: misaligned address: which is not a multiple of 4
extern "C" __global__ void fault_misaligned_atomic(int rows, int columns, const real *x, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns)
        return;
    const size_t i = (size_t)row * columns + column;
    y[i] = x[i] * w[column];
    atomicAdd(reinterpret_cast<unsigned *>(reinterpret_cast<char *>(y + i) + 1), 1u); // <- here
}
