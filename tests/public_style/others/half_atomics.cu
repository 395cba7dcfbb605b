// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "atomicAdd of half2 and bfloat162, hexp and hsqrt, conversions with rounding"
operation = "half_sums"
dimensions = ["n"]
default_sizes = "300"

[arrays.x]
shape = ["n"]
dtype = "f16"

[arrays.sums]
shape = ["4"]
dtype = "f32"
role = "out"

[workspace.halves]
shape = ["2"]
dtype = "f16"

[workspace.brains]
shape = ["2"]
dtype = "bf16"

[inputs]
x = "integers(-1, 2)"

[work]
flops = "2 * n"
bytes = "2 * n"

[check]
sums = { value = "sum(x) * ones(4)", equal = true }

[[launches]]
entry = "clear"
arguments = ["halves", "brains"]
block = [1]
grid = ["1"]

[[launches]]
entry = "add"
arguments = ["n", "x", "halves", "brains"]
block = [64]
grid = ["2"]

[[launches]]
entry = "finish"
arguments = ["halves", "brains", "sums"]
block = [1]
grid = ["1"]
*/
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__global__ void clear(__half2 *halves, __nv_bfloat162 *brains)
{
    *halves = __float2half2_rn(0.f);
    *brains = __float2bfloat162_rn(0.f);
}

__global__ void add(int n, const __half *x, __half2 *halves, __nv_bfloat162 *brains)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const __half v = __hmul(hsqrt(__float2half(4.f)), __hmul(x[i], __float2half_rz(0.5f)));
        const __half one = hexp(__hsub(v, v));
        atomicAdd(halves, __halves2half2(__hmul(v, one), v));
        atomicAdd(brains, __floats2bfloat162_rn(__half2float(v), __half2float(v)));
    }
}

__global__ void finish(const __half2 *halves, const __nv_bfloat162 *brains, float *sums)
{
    const float2 h = __half22float2(*halves), b = __bfloat1622float2(*brains);
    sums[0] = h.x, sums[1] = h.y, sums[2] = b.x, sums[3] = b.y;
}
