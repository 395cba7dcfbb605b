// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Bins that nobody sets to zero"
arguments = ["n", "data", "counts"]

[launch]
block = [64]
grid = ["1"]
*/
// executor: failed: uninitialised
// gpu: any: shared memory may hold zeros
__global__ void bad_no_clear(int n, const int *data, int *counts)
{
    __shared__ int bins[64];
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        atomicAdd(&bins[data[i]], 1); // <- here
    __syncthreads();
    counts[threadIdx.x] = bins[threadIdx.x]; // <- here
}
