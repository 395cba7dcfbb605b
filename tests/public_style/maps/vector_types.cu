// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "float4 with operators of its own, and a scalar tail"
arguments = ["n", "x", "y"]

[launch]
block = [64]
grid = ["cdiv(n, 4 * block_x)"]
*/
inline __host__ __device__ float4 operator*(float4 a, float4 b)
{
    return make_float4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w);
}

inline __host__ __device__ float4 operator+(float4 a, float4 b)
{
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

__device__ float4 splat(float v) { return make_float4(v, v, v, v); }

__global__ void vector_types(int n, const float *x, float *y)
{
    const int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (i + 3 < n) {
        const float4 v = *reinterpret_cast<const float4 *>(x + i);
        *reinterpret_cast<float4 *>(y + i) = splat(1) + v * (splat(2) + v * (splat(3) + v * splat(4)));
    } else {
        for (int j = i; j < n; ++j)
            y[j] = 1 + x[j] * (2 + x[j] * (3 + x[j] * 4));
    }
}
