// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Named barriers by inline PTX: two warps hand over to the other two"
arguments = ["columns", "x", "y"]

[launch]
block = [128]
grid = ["rows"]
*/
__device__ __forceinline__ void named_arrive(int id, int threads)
{
    asm volatile("bar.arrive %0, %1;" : : "r"(id), "r"(threads) : "memory");
}

__device__ __forceinline__ void named_sync(int id, int threads)
{
    asm volatile("bar.sync %0, %1;" : : "r"(id), "r"(threads) : "memory");
}

__global__ void named_barrier(int columns, const float *x, float *y)
{
    __shared__ float handed[64];
    const int tid = threadIdx.x;
    const float *row = x + blockIdx.x * columns;
    if (tid < 64) {
        float sum = 0;
        for (int i = tid; i < columns; i += 64)
            sum += row[i];
        handed[tid] = sum;
        named_arrive(1, 128);
    } else {
        named_sync(1, 128);
        float sum = handed[tid - 64];
        for (int offset = 16; offset; offset >>= 1)
            sum += __shfl_down_sync(~0u, sum, offset);
        named_sync(2, 64);
        if (tid % 32 == 0)
            handed[tid / 32] = sum;
        named_sync(2, 64);
        if (tid == 64)
            y[blockIdx.x] = handed[2] + handed[3];
    }
}
