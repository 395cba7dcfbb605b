// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Bins in shared memory, merged at the end; all kinds of clearing"

[[launches]]
entry = "clear"
arguments = ["counts"]
block = [32]
grid = ["1"]

[[launches]]
entry = "count"
arguments = ["n", "data", "counts"]
block = [96]
grid = ["4"]
dynamic_shared_bytes = "256"
*/
__global__ void clear(int *counts) { reinterpret_cast<int2 *>(counts)[threadIdx.x] = make_int2(0, 0); }

__global__ void count(int n, const int *__restrict__ data, int *counts)
{
    extern __shared__ unsigned bins[];
    for (int b = threadIdx.x; b < 64; b += blockDim.x)
        bins[b] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&bins[data[i]], 1u);
    __syncthreads();
    for (int b = threadIdx.x; b < 64; b += blockDim.x)
        if (bins[b])
            atomicAdd(&counts[b], (int)bins[b]);
}
