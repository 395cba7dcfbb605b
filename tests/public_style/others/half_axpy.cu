// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "half2 and bfloat162 arithmetic: scale, add, compare, convert"
operation = "half_axpy"
dimensions = ["n"]
default_sizes = "1002"
arguments = ["n", "a", "x", "y", "z"]

[scalars.a]
type = "f32"
default = 0.5

[arrays.x]
shape = ["n"]
dtype = "f16"

[arrays.y]
shape = ["n"]
dtype = "bf16"

[arrays.z]
shape = ["n"]
dtype = "f16"
role = "out"

[inputs]
x = "integers(-20, 21)"
y = "integers(-20, 21)"

[work]
flops = "3 * n"
bytes = "6 * n"

[check]
z = { value = "maximum(a * x + y, 0)", equal = true }

[launch]
block = [128]
grid = ["cdiv(n, 2 * block_x)"]
*/
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__global__ void half_axpy(int n, float a, const half2 *x, const __nv_bfloat162 *y, half2 *z)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (2 * i >= n)
        return;
    const half2 scaled = __hmul2(__float2half2_rn(a), x[i]);
    const half2 other = __float22half2_rn(__bfloat1622float2(y[i]));
    half2 sum = __hadd2(scaled, other);
    if (!__hbge2(sum, __float2half2_rn(0.f)))
        sum = __hmax2(sum, __halves2half2(__ushort_as_half(0), __int2half_rn(0)));
    z[i] = sum;
}
