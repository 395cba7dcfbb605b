// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A table of the thread's own, read one past its end in shared memory"
operation = "table_lookup"
dimensions = ["n"]
default_sizes = "300"
arguments = ["n", "x", "y"]

[arrays.x]
shape = ["n"]
dtype = "i32"

[arrays.y]
shape = ["n"]
dtype = "i32"
role = "out"

[inputs]
x = "integers(0, 65)"

[work]
bytes = "8 * n"

[check]
y = "x * x"

[launch]
block = [64]
grid = ["cdiv(n, block_x)"]
*/
// executor: failed: out of bounds
// gpu: any: past the end of shared memory may lie shared memory
__global__ void bad_table_end(int n, const int *x, int *y)
{
    __shared__ int squares[64];
    squares[threadIdx.x] = threadIdx.x * threadIdx.x;
    __syncthreads();
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = squares[x[i]]; // <- here
}
