// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A sparse matrix in ELL format times a vector"
operation = "spmv"
dimensions = ["rows", "width", "columns"]
default_sizes = "150x7x100"
arguments = ["rows", "width", "values", "places", "x", "y"]

[arrays.values]
shape = ["width", "rows"]

[arrays.places]
shape = ["width", "rows"]
dtype = "i32"

[arrays.x]
shape = ["columns"]

[arrays.y]
shape = ["rows"]
role = "out"

[inputs]
values = "integers(-8, 9)"
places = "integers(0, 100)"
x = "integers(-8, 9)"

[work]
flops = "2 * rows * width"
bytes = "8 * rows * width"

[check]
y = { value = "sum(values * take(x, places), axis=0)", equal = true }

[launch]
block = [64]
grid = ["cdiv(rows, block_x)"]
*/
__global__ void spmv_ell(int rows, int width, const float *__restrict__ values, const int *__restrict__ places,
    const float *__restrict__ x, float *__restrict__ y)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    float sum = 0;
    for (int k = 0; k < width; ++k)
        sum = fmaf(values[k * rows + row], __ldg(x + places[k * rows + row]), sum);
    y[row] = sum;
}
