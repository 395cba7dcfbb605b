// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Counters of four bits, which run over"
arguments = ["n", "data", "counts"]

[launch]
block = [64]
grid = ["1"]
*/
// both: incorrect
__global__ void bad_bytes(int n, const int *data, int *counts)
{
    __shared__ unsigned bins[8];
    if (threadIdx.x < 8)
        bins[threadIdx.x] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        atomicAdd(&bins[data[i] / 8], 1u << (4 * (data[i] % 8)));
    __syncthreads();
    counts[threadIdx.x] = bins[threadIdx.x / 8] >> (4 * (threadIdx.x % 8)) & 15;
}
