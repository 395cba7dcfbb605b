// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Rows of float4 through reinterpret_cast"
arguments = ["columns", "x", "y"]

[launch]
block = [32]
grid = ["rows"]

[[require]]
condition = "columns % 4 == 0"
because = "rows are read in words of 16 bytes"
*/
__global__ void __launch_bounds__(32, 16) float4_loads(int columns, const float *x, float *y)
{
    const float4 *row = reinterpret_cast<const float4 *>(x + blockIdx.x * columns);
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 2
    for (int i = threadIdx.x; i < columns / 4; i += 32) {
        const float4 v = row[i];
        sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
    }
    float s = (sum.x + sum.y) + (sum.z + sum.w);
    for (int mask = 16; mask; mask >>= 1)
        s += __shfl_xor_sync(0xffffffff, s, mask);
    if (!threadIdx.x)
        y[blockIdx.x] = s;
}
