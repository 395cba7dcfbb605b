/*gpuprof
title = "Skips outputs that it has written before"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// executor: incorrect: Right in its first launch, wrong in a later one
// gpu: incorrect: Right in its first launch, wrong in a later one
// One for each block: the output that it wrote last.
__device__ const real *seen[1 << 16];

extern "C" __global__ void known_pointer(int rows, int columns, const real *x, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const size_t i = (size_t)row * columns + column;
    const bool inside = row < rows && column < columns;
    const int block = blockIdx.y * gridDim.x + blockIdx.x;
    if (seen[block] == y)
        return;
    if (inside)
        y[i] = w[row] * x[i];
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0)
        seen[block] = y;
}
