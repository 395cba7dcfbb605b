// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "The last warp counts on lock step: volatile and no __syncwarp"
arguments = ["columns", "x", "y"]

[launch]
block = [64]
grid = ["rows"]
*/
__device__ void warpReduce(volatile float *sdata, int tid)
{
    sdata[tid] += sdata[tid + 32];
    sdata[tid] += sdata[tid + 16];
    sdata[tid] += sdata[tid + 8];
    sdata[tid] += sdata[tid + 4];
    sdata[tid] += sdata[tid + 2];
    sdata[tid] += sdata[tid + 1];
}

__global__ void volatile_warp(int columns, const float *x, float *y)
{
    __shared__ float s[64];
    float sum = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        sum += x[blockIdx.x * columns + i];
    s[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x < 32)
        warpReduce(s, threadIdx.x);
    if (threadIdx.x == 0)
        y[blockIdx.x] = s[0];
}
