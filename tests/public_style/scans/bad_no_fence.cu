// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Blocks hand on their sums with a flag, and nothing orders the sum before the flag"

[workspace.sums]
shape = ["rows", "4"]

[workspace.flags]
shape = ["4 * rows"]
dtype = "i32"

[[launches]]
entry = "clear_flags"
arguments = ["4 * rows", "flags"]
block = [64]
grid = ["1"]

[[launches]]
entry = "bad_no_fence"
arguments = ["columns", "x", "sums", "flags", "y"]
block = [64]
grid = ["4 * rows"]
*/
// executor: failed: race
// gpu: any: stores mostly arrive in order
__global__ void clear_flags(int n, int *flags)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        flags[i] = 0;
}

__global__ void bad_no_fence(int columns, const float *x, float *sums, volatile int *flags, float *y)
{
    __shared__ float s[64];
    __shared__ float before;
    const int tid = threadIdx.x, row = blockIdx.x / 4, part = blockIdx.x % 4, i = part * 64 + tid;
    s[tid] = i < columns ? x[row * columns + i] : 0;
    __syncthreads();
    if (tid == 0) {
        for (int k = 1; k < 64; ++k)
            s[k] += s[k - 1];
        before = 0;
        if (part > 0) {
            while (flags[blockIdx.x - 1] == 0)
                ;
            before = sums[blockIdx.x - 1]; // <- here
        }
        sums[blockIdx.x] = before + s[63]; // <- here
        flags[blockIdx.x] = 1;
    }
    __syncthreads();
    if (i < columns)
        y[row * columns + i] = before + s[tid];
}
