// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Each thread adds up eight in a row, a warp scans what the threads have"
arguments = ["columns", "x", "y"]

[launch]
block = [32]
grid = ["rows"]
*/
__global__ void __launch_bounds__(32) thread_rows(int columns, const float *__restrict__ x, float *__restrict__ y)
{
    constexpr int each = 8;
    const int first = threadIdx.x * each;
    float v[each], sum = 0;
#pragma unroll
    for (int k = 0; k < each; ++k) {
        sum += first + k < columns ? x[blockIdx.x * columns + first + k] : 0;
        v[k] = sum;
    }
    float scanned = sum;
    for (int d = 1; d < 32; d *= 2) {
        const float left = __shfl_up_sync(~0u, scanned, d);
        scanned += threadIdx.x >= d ? left : 0;
    }
#pragma unroll
    for (int k = 0; k < each; ++k)
        if (first + k < columns)
            y[blockIdx.x * columns + first + k] = scanned - sum + v[k];
}
