// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "__pipeline_memcpy_async, _commit and _wait_prior of cuda_pipeline.h"
arguments = ["n", "x", "y"]

[launch]
block = [64]
grid = ["4"]
*/
#include <cuda_pipeline.h>

__global__ void pipeline_primitives(int n, const float *x, float *y)
{
    __shared__ float buffer[2][64];
    const int stride = gridDim.x * blockDim.x;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        __pipeline_memcpy_async(&buffer[0][threadIdx.x], x + i, sizeof(float));
    __pipeline_commit();
    for (int stage = 0; i < n; i += stride, stage ^= 1) {
        if (i + stride < n)
            __pipeline_memcpy_async(&buffer[stage ^ 1][threadIdx.x], x + i + stride, sizeof(float));
        __pipeline_commit();
        __pipeline_wait_prior(1);
        const float v = buffer[stage][threadIdx.x];
        y[i] = 1 + v * (2 + v * (3 + v * 4));
    }
}
