/*gpuprof
title = "Computes in half precision"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// executor: incorrect:
// gpu: incorrect:
static __device__ float as_half(float value)
{
    unsigned short half;
    float back;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
    asm("cvt.f32.f16 %0, %1;" : "=f"(back) : "h"(half));
    return back;
}

extern "C" __global__ void less_precise(int rows, int columns, const real *x, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const size_t i = (size_t)row * columns + column;
    const bool inside = row < rows && column < columns;
    if (inside)
        y[i] = as_half(w[row]) * as_half(x[i]);
}
