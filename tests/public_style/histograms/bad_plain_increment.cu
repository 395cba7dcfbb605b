// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Bins in shared memory, without atomics"
arguments = ["n", "data", "counts"]

[launch]
block = [64]
grid = ["1"]
*/
// executor: failed: shared-memory race
// gpu: incorrect
__global__ void bad_plain_increment(int n, const int *data, int *counts)
{
    __shared__ int bins[64];
    bins[threadIdx.x] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        bins[data[i]]++; // <- here
    __syncthreads();
    counts[threadIdx.x] = bins[threadIdx.x];
}
