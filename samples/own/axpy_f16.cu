// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Two halves at a time"
operation = "axpy_f16"
operation_title = "y = a x + y in half precision"
dimensions = ["n"]
default_sizes = "4194304"
idea = "A thread loads eight halves with one instruction, adds in float and rounds once to store them."
arguments = ["n", "a", "x", "y"]

[arrays.x]
shape = ["n"]
dtype = "f16"

[arrays.y]
shape = ["n"]
dtype = "f16"
role = "inout"

[scalars.a]
type = "f32"
default = 2.0

[work]
flops = "2 * n"
bytes = "3 * 2 * n"

[check]
y = "a * x + y"
relative = "1.01 * u" # one rounding to half, after one to float
absolute = "tiny"

[launch]
block = [256]
any_block = true
grid = ["cdiv(n, 8 * block_x)"]
*/
#include <cuda_fp16.h>

extern "C" __global__ void axpy_f16(int n, float a, const __half *x, __half *y)
{
    const int first = 8 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (first + 8 <= n) {
        uint4 in = *(const uint4 *)(x + first);
        uint4 out = *(const uint4 *)(y + first);
        const __half2 *in2 = (const __half2 *)&in;
        __half2 *out2 = (__half2 *)&out;
        for (int i = 0; i < 4; ++i) {
            const float2 xi = __half22float2(in2[i]);
            const float2 yi = __half22float2(out2[i]);
            out2[i] = __floats2half2_rn(a * xi.x + yi.x, a * xi.y + yi.y);
        }
        *(uint4 *)(y + first) = out;
    } else
        for (int i = first; i < n; ++i)
            y[i] = __float2half(a * __half2float(x[i]) + __half2float(y[i]));
}
