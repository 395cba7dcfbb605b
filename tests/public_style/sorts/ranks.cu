// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Each element's place by counting those before it"
arguments = ["columns", "x", "y"]

[launch]
block = [64]
grid = ["cdiv(columns, block_x)", "rows"]
*/
__global__ void ranks(int columns, const int *__restrict__ x, int *__restrict__ y)
{
    __shared__ int part[64];
    const int i = blockIdx.x * 64 + threadIdx.x;
    const int *row = x + blockIdx.y * columns;
    const int own = i < columns ? row[i] : 0;
    int place = 0;
    for (int first = 0; first < columns; first += 64) {
        part[threadIdx.x] = first + threadIdx.x < columns ? row[first + threadIdx.x] : INT_MAX;
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < 64; ++k)
            place += part[k] < own || (part[k] == own && first + k < i);
        __syncthreads();
    }
    if (i < columns)
        y[blockIdx.y * columns + place] = own;
}
