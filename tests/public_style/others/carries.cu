// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "64-bit sums in two words by add.cc and addc of inline PTX; __umulhi, __funnelshift"
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
__global__ void carries(int n, const uint2 *a, const uint2 *b, uint2 *sum)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    uint2 s;
    asm("{\n\tadd.cc.u32 %0, %2, %4;\n\taddc.u32 %1, %3, %5;\n\t}"
        : "=r"(s.x), "=r"(s.y)
        : "r"(a[i].x), "r"(a[i].y), "r"(b[i].x), "r"(b[i].y));
    const unsigned turned = __funnelshift_l(s.x, s.x, 7), back = __funnelshift_r(turned, turned, 7);
    s.x = back + __umulhi(s.y, 0);
    sum[i] = s;
}
