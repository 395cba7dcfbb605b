/*gpuprof
title = "Reads shared memory that nobody wrote"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// expect: undefined value: of shared memory, which was never written: byte 512 of `tile`; line 20 stores to y
extern "C" __global__ void wrong_shared(int rows, int columns, const real *x, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns)
        return;
    const size_t i = (size_t)row * columns + column;
    __shared__ real tile[256];
    tile[threadIdx.y * 32 + threadIdx.x] = x[i];
    __syncwarp();
    y[i] = tile[threadIdx.y * 32 + threadIdx.x + 128] * w[column]; // <- here
}
