// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// The sum of integers: ADD is what each thread does.
/*gpuprof
operation = "total"
dimensions = ["n"]
arguments = ["n", "x", "total"]
[arrays]
x = { shape = ["n"], dtype = "i32" }
total = { shape = ["1"], dtype = "i32", role = "inout" }
[inputs]
total = "zeros"
[work]
bytes = "4 * n"
[check]
total = "sum(x)"
[launch]
block = [128]
grid = ["cdiv(n, block_x)"]
*/
extern "C" __global__ void total(int n, const int *x, int *total)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    ADD
}
