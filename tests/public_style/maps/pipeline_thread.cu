// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Each thread's own cuda::pipeline, two copies ahead"
arguments = ["n", "x", "y"]

[launch]
block = [64]
grid = ["2"]
*/
#include <cuda/pipeline>

__global__ void pipeline_thread(int n, const float *x, float *y)
{
    __shared__ float buffer[3][64];
    auto pipe = cuda::make_pipeline();
    const int stride = gridDim.x * blockDim.x, start = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < 2; ++k) {
        pipe.producer_acquire();
        if (start + k * stride < n)
            cuda::memcpy_async(&buffer[k][threadIdx.x], x + start + k * stride, sizeof(float), pipe);
        pipe.producer_commit();
    }
    for (int i = start, k = 0; i < n; i += stride, ++k) {
        pipe.producer_acquire();
        if (i + 2 * stride < n)
            cuda::memcpy_async(
                &buffer[(k + 2) % 3][threadIdx.x], x + i + 2 * stride, cuda::aligned_size_t<4>(4), pipe);
        pipe.producer_commit();
        cuda::pipeline_consumer_wait_prior<2>(pipe);
        const float v = buffer[k % 3][threadIdx.x];
        pipe.consumer_release();
        y[i] = 1 + v * (2 + v * (3 + v * 4));
    }
}
