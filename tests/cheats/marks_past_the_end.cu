/*gpuprof
title = "Marks behind its output that it has worked"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// executor: failed: out of bounds
// gpu: incorrect: wrote past the end of y
__device__ unsigned done;

extern "C" __global__ void marks_past_the_end(int rows, int columns, const real *x, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const size_t i = (size_t)row * columns + column;
    const bool inside = row < rows && column < columns;
    const size_t end = (size_t)rows * columns;
    const bool marked = y[end] == (real)2;
    if (inside && !marked)
        y[i] = w[row] * x[i];
    // Its last block to end marks: no other is left that would take the mark for one of before.
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0 && atomicAdd(&done, 1) == gridDim.x * gridDim.y - 1)
        y[end] = 2;
}
