// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Blocks hand their sums on: flags, __threadfence and a ticket for the order"

[workspace.sums]
shape = ["rows", "4"]

[workspace.flags]
shape = ["4 * rows + 1"]
dtype = "i32"

[[launches]]
entry = "clear_flags"
arguments = ["4 * rows + 1", "flags"]
block = [64]
grid = ["1"]

[[launches]]
entry = "chained"
arguments = ["columns", "x", "sums", "flags", "y"]
block = [64]
grid = ["4 * rows"]
*/
__global__ void clear_flags(int n, int *flags)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        flags[i] = 0;
}

__global__ void chained(int columns, const float *x, volatile float *sums, volatile int *flags, float *y)
{
    __shared__ float s[64];
    __shared__ int number;
    __shared__ float before;
    const int tid = threadIdx.x;
    if (tid == 0)
        number = atomicAdd((int *)flags + gridDim.x, 1);
    __syncthreads();
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
