/*gpuprof
title = "Keeps its first result in memory that it takes itself"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// executor: incorrect: Right in its first launch, wrong in a later one
// gpu: incorrect: Right in its first launch, wrong in a later one
__device__ real *results[1 << 16];

extern "C" __global__ void kept_on_the_heap(int rows, int columns, const real *x, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const size_t i = (size_t)row * columns + column;
    const bool inside = row < rows && column < columns;
    if (!inside)
        return;
    if (results[i] == nullptr) {
        results[i] = (real *)malloc(sizeof(real));
        if (results[i] == nullptr)
            return;
        *results[i] = w[row] * x[i];
    }
    y[i] = *results[i];
}
