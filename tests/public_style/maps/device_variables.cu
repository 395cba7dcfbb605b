// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Device and constant variables of 1, 2, 4, 12 and 1,000 bytes, some of which the kernel writes"
arguments = ["n", "x", "y"]

[launch]
block = [128]
grid = ["cdiv(n, block_x)"]
*/
__device__ char one = 1;
__constant__ unsigned char also_one = 1;
__device__ short two = 2;
__constant__ unsigned short also_two = 2;
__device__ int four = 4;
__device__ unsigned launches;
struct Three {
    float a, b, c;
};
__device__ Three twelve = {1, 2, 3};
__device__ unsigned char seen[1000];
__device__ short last_block = -1;

__global__ void device_variables(int n, const float *x, float *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0)
        ++launches;
    if (threadIdx.x == 0 && blockIdx.x == gridDim.x - 1)
        last_block = (short)blockIdx.x;
    if (i >= n)
        return;
    seen[i % 1000] = 1;
    const float v = x[i];
    y[i] = one * also_one + v * (two + v * (twelve.c + v * four * (also_two - one)));
}
