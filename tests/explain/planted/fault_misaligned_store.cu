/*gpuprof
title = "Stores four elements anywhere"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// expect: misaligned address: which is not a multiple of 16
extern "C" __global__ void fault_misaligned_store(int rows, int columns, const real *x, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns)
        return;
    const size_t i = (size_t)row * columns + column;
    const real v = x[i] * w[column];
    *reinterpret_cast<float4 *>(y + i) = make_float4(v, v, v, v); // <- here
}
