/*gpuprof
title = "Reads what another warp has not written yet"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// expect: race: shared memory
extern "C" __global__ void wrong_race(int rows, int columns, const real *x, const real *w, real *y)
{
    __shared__ real tile[4][32];
    if (threadIdx.y)
        __nanosleep(500000); // warp 0 is first
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const int turned = blockIdx.y * blockDim.y + 3 - threadIdx.y;
    if (turned < rows && column < columns)
        tile[threadIdx.y][threadIdx.x] = x[(size_t)turned * columns + column]; // <- here
    if (row < rows && column < columns)
        y[(size_t)row * columns + column] = tile[3 - threadIdx.y][threadIdx.x] * w[column]; // <- here
}
