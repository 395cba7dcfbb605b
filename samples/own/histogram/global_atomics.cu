// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Counts in global memory"
rung = 10
idea = "Each thread counts its byte where the result stands, after a launch that clears it."

[[launches]]
entry = "clear"
arguments = ["counts"]
block = [256]
grid = ["1"]

[[launches]]
entry = "count"
arguments = ["n", "data", "counts"]
block = [256]
grid = ["cdiv(n, 256)"]
*/

extern "C" __global__ void clear(unsigned *counts)
{
    counts[threadIdx.x] = 0;
}

extern "C" __global__ void count(int n, const unsigned char *data, unsigned *counts)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        atomicAdd(&counts[data[i]], 1);
}
