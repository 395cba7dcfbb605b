// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Two blocks store their bins to one place, and none adds"
arguments = ["n", "data", "counts"]

[launch]
block = [64]
grid = ["2"]
*/
// executor: any: global race or wrong counts, whichever is met first
// gpu: incorrect
__global__ void bad_missing_merge(int n, const int *data, int *counts)
{
    __shared__ int bins[64];
    bins[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * 64 + threadIdx.x; i < n; i += 128)
        atomicAdd(&bins[data[i]], 1);
    __syncthreads();
    counts[threadIdx.x] = bins[threadIdx.x];
}
