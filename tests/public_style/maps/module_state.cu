// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A counter that goes on from launch to launch, and a table that the first block fills for itself"
arguments = ["n", "x", "y"]

[launch]
block = [128]
grid = ["cdiv(n, block_x)"]
*/
__device__ unsigned long long launched = 0;
__device__ float table[3];
__managed__ int managed = 4;
static __device__ const float factors[] = {1.f, 2.f, 3.f};

__global__ void module_state(int n, const float *x, float *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0)
        atomicAdd(&launched, 1ull);
    if (blockIdx.x == 0 && threadIdx.x < 3)
        table[threadIdx.x] = factors[threadIdx.x];
    if (i < n)
        y[i] = factors[0] + x[i] * (factors[1] + x[i] * (factors[2] + x[i] * managed));
}
