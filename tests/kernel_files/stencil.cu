// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Five points"
operation = "stencil"
dimensions = ["rows", "columns"]
default_sizes = "37x70"
arguments = ["rows", "columns", "x", "out"]
dtypes = ["f16", "bf16"]
[arrays]
x = { shape = ["rows", "columns"] }
out = { shape = ["rows", "columns"], role = "out" }
[work]
bytes = "2 * rows * columns * real_bytes"
[check.out]
value = "(4 * x + roll(x, 1, 0) + roll(x, -1, 0) + roll(x, 1, 1) + roll(x, -1, 1)) / 8"
magnitude = "(4 * abs(x) + 4) / 8"
accumulate = "f32"
relative = "8 * u"
[launch]
block = [32, 8]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
__device__ float at(const real *x, int rows, int columns, int row, int column)
{
    return float(x[(row + rows) % rows * columns + (column + columns) % columns]);
}

extern "C" __global__ void stencil(int rows, int columns, const real *x, real *out)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns)
        return;
    float sum = 4 * at(x, rows, columns, row, column);
    sum += at(x, rows, columns, row - 1, column) + at(x, rows, columns, row + 1, column);
    sum += at(x, rows, columns, row, column - 1) + at(x, rows, columns, row, column + 1);
    out[row * columns + column] = real(sum / 8);
}
