/*gpuprof
title = "Leaves the work to a grid that it launches itself, and ends"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [1]
grid = ["1"]
*/
// executor: failed: does not compile
// gpu: refused
static __global__ void work(int rows, int columns, const real *x, const real *w, real *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows * columns)
        y[i] = w[i / columns] * x[i];
}

extern "C" __global__ void launches_grids(int rows, int columns, const real *x, const real *w, real *y)
{
    work<<<(rows * columns + 127) / 128, 128>>>(rows, columns, x, w, y);
}
