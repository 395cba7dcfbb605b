// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Warp shuffles, then one warp adds what the warps found"
arguments = ["columns", "x", "y"]
entry = "row_sum_kernel"

[launch]
block = [128]
grid = ["rows"]
*/
#include <cuda_runtime.h>
#define FULL_MASK 0xffffffffu

__inline__ __device__ float warpReduceSum(float val)
{
    for (int offset = warpSize / 2; offset > 0; offset /= 2)
        val += __shfl_down_sync(FULL_MASK, val, offset);
    return val;
}

__inline__ __device__ float blockReduceSum(float val)
{
    static __shared__ float shared[32];
    int lane = threadIdx.x % warpSize;
    int wid = threadIdx.x / warpSize;
    val = warpReduceSum(val);
    if (lane == 0)
        shared[wid] = val;
    __syncthreads();
    val = (threadIdx.x < blockDim.x / warpSize) ? shared[lane] : 0;
    if (wid == 0)
        val = warpReduceSum(val);
    return val;
}

__global__ void row_sum_kernel(int columns, const float *__restrict__ x, float *__restrict__ y)
{
    float sum = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        sum += __ldg(&x[blockIdx.x * columns + i]);
    sum = blockReduceSum(sum);
    if (threadIdx.x == 0)
        y[blockIdx.x] = sum;
}
