/*gpuprof
title = "Right in its first launch only"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// expect: wrong store: of block (0, 0, 0) stores 1 to y[0, 0]
__device__ unsigned arrivals;

extern "C" __global__ void wrong_later(int rows, int columns, const real *x, const real *w, real *y)
{
    __shared__ unsigned launch; // since the module was loaded
    if (threadIdx.x == 0 && threadIdx.y == 0)
        launch = atomicAdd(&arrivals, 1) / (gridDim.x * gridDim.y);
    __syncthreads();
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns)
        return;
    const size_t i = (size_t)row * columns + column;
    if (launch == 0)
        y[i] = x[i] * w[column];
    else
        y[i] = 1; // <- here
}
