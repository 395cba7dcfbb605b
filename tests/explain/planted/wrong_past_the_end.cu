/*gpuprof
title = "Writes one element behind the output"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// expect: illegal address: writes 4 bytes past the end of y: element 10500 of 10500; it depends on lines 16 and 18
extern "C" __global__ void wrong_past_the_end(int rows, int columns, const real *x, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns)
        return;
    const size_t i = (size_t)row * columns + column;
    y[i] = x[i] * w[column];
    if (i == 0)
        y[(size_t)rows * columns] = 1; // <- here
}
