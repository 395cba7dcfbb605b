/*gpuprof
title = "Its second launch goes astray"

[workspace.partial]
shape = ["rows * columns"]

[[launches]]
entry = "copied"
arguments = ["cdiv(rows * columns, 1)", "x", "partial"]
block = ["128"]
grid = ["cdiv(rows * columns, block_x)"]

[[launches]]
entry = "scaled"
arguments = ["rows", "columns", "partial", "w", "y"]
block = ["32", "4"]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// expect: illegal address: reads 4 bytes past the end of partial: element 4294967296 of
extern "C" __global__ void copied(int n, const real *x, real *partial)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        partial[i] = x[i];
}

extern "C" __global__ void scaled(int rows, int columns, const real *partial, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns)
        return;
    const size_t i = (size_t)row * columns + column;
    y[i] = partial[i + (1ll << 32)] * w[column]; // <- here
}
