// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Waits for all but the two newest copies, and reads one of those"
arguments = ["n", "x", "y"]

[launch]
block = [64]
grid = ["4"]
*/
// executor: failed
// gpu: any: a copy may be quick
#include <cuda_pipeline.h>

__global__ void bad_pipeline_early(int n, const float *x, float *y)
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
        __pipeline_wait_prior(2);
        const float v = buffer[stage][threadIdx.x]; // <- here
        y[i] = 1 + v * (2 + v * (3 + v * 4));
    }
}
