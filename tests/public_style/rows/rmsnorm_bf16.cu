// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "RMS normalisation of bfloat16, two at a time, summed in float"
operation = "rmsnorm"
dimensions = ["rows", "columns"]
default_sizes = "5x256"
arguments = ["columns", "x", "gain", "y"]

[arrays.x]
shape = ["rows", "columns"]
dtype = "bf16"

[arrays.gain]
shape = ["columns"]
dtype = "bf16"

[arrays.y]
shape = ["rows", "columns"]
dtype = "bf16"
role = "out"

[inputs]
x = "normal(0, 1)"

[work]
flops = "4 * rows * columns"
bytes = "4 * rows * columns + 2 * columns"

[check.y]
value = "x / sqrt(mean(x * x, axis=1, keepdims=True) + 1e-6) * gain"
relative = "4 * u"

[launch]
block = [64]
grid = ["rows"]
*/
#include <cuda_bf16.h>

__global__ void rmsnorm_bf16(int columns, const __nv_bfloat16 *x, const __nv_bfloat16 *gain, __nv_bfloat16 *y)
{
    __shared__ float sums[2];
    const auto *row = reinterpret_cast<const __nv_bfloat162 *>(x + blockIdx.x * columns);
    float sum = 0;
    for (int i = threadIdx.x; i < columns / 2; i += blockDim.x) {
        const float2 v = __bfloat1622float2(row[i]);
        sum += v.x * v.x + v.y * v.y;
    }
    for (int offset = 16; offset; offset >>= 1)
        sum += __shfl_xor_sync(0xffffffff, sum, offset);
    if (threadIdx.x % 32 == 0)
        sums[threadIdx.x / 32] = sum;
    __syncthreads();
    const float scale = rsqrtf((sums[0] + sums[1]) / columns + 1e-6f);
    for (int i = threadIdx.x; i < columns / 2; i += blockDim.x) {
        const float2 v = __bfloat1622float2(row[i]);
        const float2 g = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162 *>(gain)[i]);
        reinterpret_cast<__nv_bfloat162 *>(y + blockIdx.x * columns)[i] =
            __floats2bfloat162_rn(v.x * scale * g.x, v.y * scale * g.y);
    }
}
