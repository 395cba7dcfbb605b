/*gpuprof
title = "Loads two elements from an odd place"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// expect: misaligned address: which is not a multiple of 8
extern "C" __global__ void fault_misaligned_load(int rows, int columns, const real *x, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns)
        return;
    const size_t i = (size_t)row * columns + column;
    const float2 both = *reinterpret_cast<const float2 *>(x + (i & ~1) + 1); // <- here
    y[i] = (both.x + both.y) * w[column];
}
