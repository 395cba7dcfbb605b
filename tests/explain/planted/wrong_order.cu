/*gpuprof
title = "Takes it for granted that blocks come in their order"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// expect: race: nothing orders the two: y[
__device__ unsigned tickets;
extern "C" __global__ void wrong_order(int rows, int columns, const real *x, const real *w, real *y)
{
    __shared__ unsigned block;
    if (threadIdx.x == 0 && threadIdx.y == 0) {
        if (blockIdx.x == 0 && blockIdx.y == 0)
            __nanosleep(500000); // block 0 is last
        block = atomicAdd(&tickets, 1) % (gridDim.x * gridDim.y); // <- here
    }
    __syncthreads();
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && column < columns)
        y[(size_t)row * columns + column] = x[(size_t)row * columns + column] * w[column]
            + (block != blockIdx.y * gridDim.x + blockIdx.x);
}
