// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "__match_any_sync: the first lane of those with one value adds for all"
arguments = ["n", "data", "counts"]

[launch]
block = [128]
grid = ["1"]
*/
__global__ void match_any(int n, const int *data, int *counts)
{
    __shared__ int bins[64];
    if (threadIdx.x < 64)
        bins[threadIdx.x] = 0;
    __syncthreads();
    const unsigned lane = threadIdx.x % 32;
    for (int first = 0; first < n; first += blockDim.x) {
        const int i = first + threadIdx.x;
        const unsigned here = __ballot_sync(0xffffffff, i < n);
        if (i < n) {
            const unsigned same = __match_any_sync(here, data[i]);
            if (lane == __ffs(same) - 1)
                atomicAdd_block(&bins[data[i]], __popc(same));
        }
    }
    __syncthreads();
    if (threadIdx.x < 64)
        counts[threadIdx.x] = bins[threadIdx.x];
}
