/*gpuprof
title = "Reads far behind its shared array"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// expect: illegal address: of shared memory
extern "C" __global__ void fault_shared_past(int rows, int columns, const real *x, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns)
        return;
    const size_t i = (size_t)row * columns + column;
    __shared__ real tile[128];
    tile[threadIdx.y * 32 + threadIdx.x] = x[i];
    __syncwarp();
    y[i] = tile[threadIdx.y * 32 + threadIdx.x + columns * 100000] * w[column]; // <- here
}
