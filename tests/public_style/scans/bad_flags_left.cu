// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Blocks hand their sums on by flags that stay set for the next launch"
arguments = ["columns", "x", "y"]

[launch]
block = [64]
grid = ["4 * rows"]
*/
// executor: failed: in a second launch, which finds what the first left in memory
// gpu: any: blocks that come in order find the sums of this launch
__device__ float sums[1024];
__device__ volatile int flags[1024];

__global__ void bad_flags_left(int columns, const float *x, float *y)
{
    __shared__ float s[64];
    __shared__ float before;
    const int tid = threadIdx.x;
    const int number = blockIdx.x;
    const int row = number / 4, part = number % 4, i = part * 64 + tid;
    s[tid] = i < columns ? x[row * columns + i] : 0;
    __syncthreads();
    for (int d = 1; d < 64; d *= 2) {
        const float left = tid >= d ? s[tid - d] : 0;
        __syncthreads();
        s[tid] += left;
        __syncthreads();
    }
    if (tid == 0) {
        before = 0;
        if (part > 0) {
            while (flags[number - 1] == 0)
                ;
            __threadfence();
            before = sums[number - 1];
        }
        sums[number] = before + s[63];
        __threadfence();
        flags[number] = 1;
    }
    __syncthreads();
    if (i < columns)
        y[row * columns + i] = before + s[tid];
}
