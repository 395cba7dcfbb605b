/*gpuprof
title = "Takes a lock that nobody gives back"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// expect: endless loop: loops forever
__device__ int lock;

extern "C" __global__ void hang_lock(int rows, int columns, const real *x, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns)
        return;
    const size_t i = (size_t)row * columns + column;
    if (threadIdx.x == 0 && threadIdx.y == 0)
        while (atomicCAS(&lock, 0, 1)) // <- here
            ;
    y[i] = x[i] * w[column];
}
