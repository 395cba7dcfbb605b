// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A bitonic network of one warp in registers, four elements a lane"
arguments = ["x", "y"]

[launch]
block = [32]
grid = ["rows"]

[[require]]
condition = "columns == 128"
because = "a row is one warp"
*/
__device__ __forceinline__ void exchange(int &a, int &b, bool up)
{
    const int low = min(a, b), high = max(a, b);
    a = up ? low : high;
    b = up ? high : low;
}

__global__ void bitonic_warp(const int *x, int *y)
{
    int v[4]; // element 32 * i + lane
    const int lane = threadIdx.x;
#pragma unroll
    for (int i = 0; i < 4; ++i)
        v[i] = x[blockIdx.x * 128 + 32 * i + lane];
#pragma unroll
    for (int k = 2; k <= 128; k *= 2)
#pragma unroll
        for (int j = k / 2; j > 0; j /= 2)
            if (j >= 32) {
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    if (!(i & j / 32))
                        exchange(v[i], v[i ^ j / 32], ((32 * i + lane) & k) == 0);
            } else {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int other = __shfl_xor_sync(~0u, v[i], j);
                    const bool up = ((32 * i + lane) & k) == 0, lower = (lane & j) == 0;
                    v[i] = up == lower ? min(v[i], other) : max(v[i], other);
                }
            }
#pragma unroll
    for (int i = 0; i < 4; ++i)
        y[blockIdx.x * 128 + 32 * i + lane] = v[i];
}
