// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Potentials of all bodies, tile by tile, as float4"
operation = "n_body"
dimensions = ["n"]
default_sizes = "130"
arguments = ["n", "x", "y"]

[arrays.x]
shape = ["n"]

[arrays.y]
shape = ["n"]
role = "out"

[work]
flops = "5 * n * n"
bytes = "2 * n * real_bytes"

[check]
y = "sum(1 / sqrt(square(outer(x, ones(n)) - outer(ones(n), x)) + 0.01), axis=1)"
relative = "64 * u"

[launch]
block = [64]
grid = ["cdiv(n, 64)"]
dynamic_shared_bytes = "16 * 64"
*/
__device__ float4 interaction(float4 acc, float4 a, float4 b)
{
    const float3 r = make_float3(b.x - a.x, b.y - a.y, b.z - a.z);
    acc.w += b.w * rsqrtf(r.x * r.x + r.y * r.y + r.z * r.z + 0.01f);
    return acc;
}

__global__ void n_body(int n, const float *x, float *y)
{
    extern __shared__ float4 bodies[];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float4 own = make_float4(i < n ? x[i] : 0, 0, 0, 1);
    float4 acc = make_float4(0, 0, 0, 0);
    for (int tile = 0; tile < gridDim.x; ++tile) {
        const int j = tile * blockDim.x + threadIdx.x;
        bodies[threadIdx.x] = make_float4(j < n ? x[j] : 0, 0, 0, j < n ? 1 : 0);
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < blockDim.x; ++k)
            acc = interaction(acc, own, bodies[k]);
        __syncthreads();
    }
    if (i < n)
        y[i] = acc.w;
}
