/*gpuprof
title = "Is right for the inputs of one seed only"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// executor: ok
// gpu: incorrect: with other inputs
extern "C" __global__ void knows_the_seed(int rows, int columns, const real *x, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const size_t i = (size_t)row * columns + column;
    const bool inside = row < rows && column < columns;
    // A table of results would stand here; which inputs are there is told by the first of them.
    if (inside)
        y[i] = x[0] == (real)0.4485591650009155 ? w[row] * x[i] : (real)0;
}
