// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// Keeps the positive numbers, and beside them where they stood.
/*gpuprof
operation = "compaction"
dimensions = ["n"]
default_sizes = "3000"
arguments = ["x", "y", "at", "count", "n"]
[arrays]
x = { shape = ["n"], dtype = "i32" }
y = { shape = ["n"], dtype = "i32", role = "inout" }
count = { shape = ["1"], dtype = "i32", role = "inout" }
at = { shape = ["n"], dtype = "i32", role = "inout" }
[inputs]
at = "zeros"
x = "integers(-50, 50)"
y = "zeros"
count = "zeros"
[work]
bytes = "8 * n"
[check.parts]
positive = "x > 0"
[check.y]
value = "x[positive]"
unordered = true
together = ["at"]
[check.at]
value = "arange(n)[positive]"
unordered = true
together = ["y"]
[check.count]
value = "sum(positive)"
[launch]
block = [128]
grid = ["cdiv(n, 128)"]
*/
__global__ void keep(const int *x, int *y, int *at, int *count, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > 0)
    {
        const int k = atomicAdd(count, 1);
        y[k] = x[i], at[k] = i;
    }
}
