// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "The block that comes last adds up what all left: __threadfence and a ticket"
arguments = ["columns", "x", "partial", "y"]

[workspace.partial]
shape = ["rows", "3"]

[launch]
block = [64]
grid = ["3", "rows"]
*/
__device__ unsigned int retirementCount[64];

__global__ void ticket(int columns, const float *x, volatile float *partial, float *y)
{
    __shared__ float sdata[64];
    __shared__ bool amLast;
    const int tid = threadIdx.x;
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + tid; i < columns; i += gridDim.x * blockDim.x)
        sum += x[blockIdx.y * columns + i];
    sdata[tid] = sum;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s)
            sdata[tid] += sdata[tid + s];
        __syncthreads();
    }
    if (tid == 0) {
        partial[blockIdx.y * gridDim.x + blockIdx.x] = sdata[0];
        __threadfence();
        unsigned int ticket = atomicInc(&retirementCount[blockIdx.y], gridDim.x);
        amLast = (ticket == gridDim.x - 1);
    }
    __syncthreads();
    if (amLast && tid == 0) {
        float total = 0;
        for (int i = 0; i < gridDim.x; ++i)
            total += partial[blockIdx.y * gridDim.x + i];
        y[blockIdx.y] = total;
        retirementCount[blockIdx.y] = 0;
    }
}
