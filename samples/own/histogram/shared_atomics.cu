// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Counts in shared memory"
rung = 20
after = "global_atomics"
idea = "Each block counts many bytes in a histogram of its own in shared memory, and adds that to the result."
change = "Atomic operations on global memory become few; those on shared memory are cheap, as long as lanes do not meet in one count."

[moves]
global_atomic_requests = "falls"
shared_atomic_requests = "rises"
grid_blocks = "falls"

[[launches]]
entry = "clear"
arguments = ["counts"]
block = [256]
grid = ["1"]

[[launches]]
entry = "count"
arguments = ["n", "data", "counts"]
block = [256]
grid = ["min(cdiv(n, 16 * 256), 8 * sm_count)"]
*/

extern "C" __global__ void clear(unsigned *counts)
{
    counts[threadIdx.x] = 0;
}

extern "C" __global__ void count(int n, const unsigned char *data, unsigned *counts)
{
    __shared__ unsigned own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        atomicAdd(&own[data[i]], 1);
    __syncthreads();
    atomicAdd(&counts[threadIdx.x], own[threadIdx.x]);
}
