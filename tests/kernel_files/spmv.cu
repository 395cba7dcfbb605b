// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// Every row of a CSR matrix times a vector.
/*gpuprof
operation = "spmv"
dimensions = ["rows", "columns", "nnz"]
default_sizes = "100x60x1500"
arguments = ["rows", "offsets", "indices", "values", "x", "y"]
[arrays]
offsets = { shape = ["rows + 1"], dtype = "i32" }
indices = { shape = ["nnz"], dtype = "i32" }
values = { shape = ["nnz"] }
x = { shape = ["columns"] }
y = { shape = ["rows"], role = "out" }
[inputs]
offsets = "csr_offsets(nnz)"
indices = "csr_columns(offsets, columns)"
values = "integers(-4, 5)"
x = "integers(-4, 5)"
[work]
bytes = "8 * nnz"
[check]
parts = { sums = "concatenate((zeros(1), cumsum(values * take(x, indices))))" }
y = { value = "take(sums, offsets[1:]) - take(sums, offsets[:-1])", equal = true }
[launch]
block = [64]
grid = ["cdiv(rows, 64)"]
*/
__global__ void spmv(
    int rows, const int *offsets, const int *indices, const float *values, const float *x, float *y)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    float sum = 0;
    for (int i = offsets[row]; i < offsets[row + 1]; ++i)
        sum += values[i] * x[indices[i]];
    y[row] = sum;
}
