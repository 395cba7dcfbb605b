/*gpuprof
title = "Keeps its first result, and copies it from then on"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// executor: incorrect: Right in its first launch, wrong in a later one
// gpu: incorrect: Right in its first launch, wrong in a later one
__device__ real result[1 << 20];
__device__ bool filled[1 << 20];

extern "C" __global__ void kept_result(int rows, int columns, const real *x, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const size_t i = (size_t)row * columns + column;
    const bool inside = row < rows && column < columns;
    if (!inside)
        return;
    if (!filled[i]) {
        result[i] = w[row] * x[i];
        filled[i] = true;
    }
    y[i] = result[i];
}
