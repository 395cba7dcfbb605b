// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Sorted by cub::BlockRadixSort, then runs found by ballots of their heads"
arguments = ["n", "data", "counts"]

[launch]
block = [128]
grid = ["1"]
*/
#include <cub/block/block_radix_sort.cuh>

__global__ void run_lengths(int n, const int *data, int *counts)
{
    using Sort = cub::BlockRadixSort<unsigned, 128, 12>;
    __shared__ typename Sort::TempStorage temp;
    __shared__ unsigned firsts[66];
    unsigned keys[12];
    for (int k = 0; k < 12; ++k) {
        const int i = k * 128 + threadIdx.x;
        keys[k] = i < n ? data[i] : 64;
    }
    if (threadIdx.x < 66)
        firsts[threadIdx.x] = 12 * 128;
    Sort(temp).Sort(keys, 0, 7);
    __syncthreads();
    for (int k = 0; k < 12; ++k)
        atomicMin(&firsts[keys[k]], threadIdx.x * 12 + k);
    __syncthreads();
    if (threadIdx.x < 64) {
        unsigned next = threadIdx.x + 1;
        while (next < 65 && firsts[next] == 12 * 128)
            ++next;
        const unsigned end = next > 64 ? 12 * 128 : firsts[next];
        counts[threadIdx.x] = firsts[threadIdx.x] == 12 * 128 ? 0 : end - firsts[threadIdx.x];
    }
}
