/*gpuprof
title = "Works on the first SM only"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// executor: incorrect:
// gpu: incorrect:
extern "C" __global__ void on_one_sm(int rows, int columns, const real *x, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const size_t i = (size_t)row * columns + column;
    const bool inside = row < rows && column < columns;
    unsigned sm;
    asm volatile("mov.u32 %0, %smid;" : "=r"(sm));
    if (inside && sm == 0)
        y[i] = w[row] * x[i];
}
