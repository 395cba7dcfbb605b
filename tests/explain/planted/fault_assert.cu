/*gpuprof
title = "Asserts what does not hold"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// expect: trap: fails the assertion `w[column] > 10`
extern "C" __device__ void __assertfail(const char *, const char *, unsigned, const char *, size_t);

extern "C" __global__ void fault_assert(int rows, int columns, const real *x, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns)
        return;
    const size_t i = (size_t)row * columns + column;
    if (!(w[column] > 10))
        __assertfail("w[column] > 10", __FILE__, __LINE__, __func__, 1); // <- here
    y[i] = x[i] * w[column];
}
