// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A grid of whole tiles leaves out the ragged end"
arguments = ["columns", "x", "y"]

[launch]
block = [64]
grid = ["rows"]
*/
// both: incorrect
__global__ void bad_one_short(int columns, const float *x, float *y)
{
    __shared__ float total;
    if (threadIdx.x == 0)
        total = 0;
    __syncthreads();
    for (int tile = 0; tile < columns / 64; ++tile)
        atomicAdd(&total, x[blockIdx.x * columns + tile * 64 + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0)
        y[blockIdx.x] = total;
}
