// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Bit tricks: bytes turned round, Gray codes, the lowest bit"
operation = "bits"
dimensions = ["n"]
default_sizes = "1000"
arguments = ["n", "x", "swapped", "gray", "low"]

[arrays.x]
shape = ["n"]
dtype = "u32"

[arrays.swapped]
shape = ["n"]
dtype = "u32"
role = "out"

[arrays.gray]
shape = ["n"]
dtype = "u32"
role = "out"

[arrays.low]
shape = ["n"]
dtype = "u32"
role = "out"

[inputs]
x = "integers(1, 4000000000)"

[work]
bytes = "16 * n"

[check]
swapped = "x >> 24 | x >> 8 & 65280 | (x & 65280) << 8 | (x & 255) << 24"
gray = "x ^ x >> 1"
low = "x & -x"

[launch]
block = [64]
grid = ["cdiv(n, block_x)"]
*/
__global__ void bit_tricks(int n, const unsigned *x, unsigned *swapped, unsigned *gray, unsigned *low)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const unsigned v = x[i];
    swapped[i] = __byte_perm(v, 0, 0x0123);
    unsigned g = 0;
    for (int b = 0; b < 32; ++b)
        g |= (__popc(v >> b & 3u) & 1u) << b;
    gray[i] = __brev(__brev(g));
    const int first = __ffs(v) - 1, same = 31 - __clz(v & (0u - v));
    low[i] = first == same ? 1u << __fns(v, 0, 1) : 0;
}
