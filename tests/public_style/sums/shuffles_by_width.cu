// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "__shfl_sync of sub-warps by width, __shfl_xor_sync of doubles and of long long"
arguments = ["columns", "x", "y"]

[launch]
block = [32]
grid = ["rows"]
*/
__global__ void shuffles_by_width(int columns, const float *x, float *y)
{
    double sum = 0;
    for (int i = threadIdx.x; i < columns; i += 32)
        sum += x[blockIdx.x * columns + i];
    for (int d = 1; d < 8; d *= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, d, 8);
    long long quarter = (long long)sum, total = 0;
    for (int k = 0; k < 4; ++k)
        total += __shfl_sync(0xffffffff, quarter, 8 * k);
    const int same = __all_sync(~0u, __shfl_sync(~0u, total, 0, 16) == total);
    if (threadIdx.x == 0)
        y[blockIdx.x] = same && __any_sync(1u, true) && __activemask() ? (float)total : -1;
}
