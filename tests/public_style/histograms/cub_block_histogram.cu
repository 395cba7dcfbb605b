// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "cub::BlockHistogram, by sorting and by atomics"
arguments = ["n", "data", "counts"]

[launch]
block = [64]
grid = ["1"]
*/
#include <cub/block/block_histogram.cuh>

__global__ void cub_block_histogram(int n, const int *data, int *counts)
{
    using Atomics = cub::BlockHistogram<unsigned char, 64, 4, 65, cub::BLOCK_HISTO_ATOMIC>;
    using Sorting = cub::BlockHistogram<unsigned char, 64, 4, 65, cub::BLOCK_HISTO_SORT>;
    __shared__ union {
        typename Atomics::TempStorage atomics;
        typename Sorting::TempStorage sorting;
    } temp;
    __shared__ int bins[65];
    Atomics(temp.atomics).InitHistogram(bins);
    __syncthreads();
    for (int first = 0, turn = 0; first < n; first += 256, ++turn) {
        unsigned char items[4];
        for (int k = 0; k < 4; ++k) {
            const int i = first + 4 * threadIdx.x + k;
            items[k] = i < n ? data[i] : 64;
        }
        if (turn % 2)
            Sorting(temp.sorting).Composite(items, bins);
        else
            Atomics(temp.atomics).Composite(items, bins);
        __syncthreads();
    }
    counts[threadIdx.x] = bins[threadIdx.x];
}
