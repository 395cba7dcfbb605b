/*gpuprof
title = "Its second launch takes a neighbour"

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
// expect: wrong store: of block (0, 0, 0) stores
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
    y[i] = partial[i ? i - 1 : 0] * w[column]; // <- here
}
