// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "atomicAdd to global memory, after a launch that clears it"

[[launches]]
entry = "clear"
arguments = ["counts"]
block = [64]
grid = ["1"]

[[launches]]
entry = "count"
arguments = ["n", "data", "counts"]
block = [128]
grid = ["3"]
*/
__global__ void clear(int *counts) { counts[threadIdx.x] = 0; }

__global__ void count(int n, const int *data, int *counts)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&counts[data[i]], 1);
}
