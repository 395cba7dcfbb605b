// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "64-bit sums in two words, whose carry is dropped"
operation = "wide_sums"
dimensions = ["n"]
default_sizes = "256"
arguments = ["n", "a", "b", "sum"]

[arrays.a]
shape = ["n"]
dtype = "u64"

[arrays.b]
shape = ["n"]
dtype = "u64"

[arrays.sum]
shape = ["n"]
dtype = "u64"
role = "out"

[inputs]
a = "integers(0, 1000000000000)"
b = "integers(0, 1000000000000)"

[work]
bytes = "24 * n"

[check]
sum = "a + b"

[launch]
block = [64]
grid = ["cdiv(n, block_x)"]
*/
// both: incorrect
__global__ void bad_dropped_carry(int n, const uint2 *a, const uint2 *b, uint2 *sum)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        sum[i] = make_uint2(a[i].x + b[i].x, a[i].y + b[i].y);
}
