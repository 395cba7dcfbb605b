/*gpuprof
title = "Goes astray in a function that it calls"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// expect: illegal address: reads 4 bytes past the end of x
__device__ __noinline__ real element(const real *x, size_t i)
{
    return x[i + (1ll << 32)]; // <- here
}

extern "C" __global__ void fault_in_function(int rows, int columns, const real *x, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns)
        return;
    const size_t i = (size_t)row * columns + column;
    y[i] = element(x, i) * w[column];
}
