/*gpuprof
title = "Is right when no thread puts back what it read before another wrote"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// executor: failed: race
// gpu: refused
extern "C" __global__ void races(int rows, int columns, const real *x, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const size_t i = (size_t)row * columns + column;
    const bool inside = row < rows && column < columns;
    // Every element is read and put back by a thread of another block, which may have read it too early.
    const size_t other = (i + 4 * (size_t)columns) % ((size_t)rows * columns);
    const real one = (real)min(rows, 1); // as no compiler can know
    if (inside) {
        y[i] = w[row] * x[i];
        y[other] = one * y[other];
    }
}
