// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "The last block by a ticket that nobody sets back"
arguments = ["columns", "x", "partial", "y"]

[workspace.partial]
shape = ["rows", "3"]

[launch]
block = [64]
grid = ["3", "rows"]
*/
// executor: incorrect: wrong in a later one: with other inputs
// gpu: incorrect: Right in its first launch, wrong in a later one
__device__ unsigned int retirementCount[64];

__global__ void bad_ticket_left(int columns, const float *x, volatile float *partial, float *y)
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
        unsigned int ticket = atomicInc(&retirementCount[blockIdx.y], ~0u);
        amLast = (ticket == gridDim.x - 1);
    }
    __syncthreads();
    if (amLast && tid == 0) {
        float total = 0;
        for (int i = 0; i < gridDim.x; ++i)
            total += partial[blockIdx.y * gridDim.x + i];
        y[blockIdx.y] = total;
    }
}
