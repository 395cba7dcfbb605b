// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "cub::BlockRadixSort of pairs, blocked to striped"
arguments = ["columns", "x", "y"]

[launch]
block = [32]
grid = ["rows"]
*/
#include <cub/block/block_radix_sort.cuh>
#include <cuda/std/limits>

__global__ void cub_radix_sort(int columns, const int *x, int *y)
{
    using Sort = cub::BlockRadixSort<int, 32, 4, unsigned char>;
    __shared__ typename Sort::TempStorage temp;
    int keys[4];
    unsigned char places[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        const int i = threadIdx.x * 4 + k;
        keys[k] = i < columns ? x[blockIdx.x * columns + i] : cuda::std::numeric_limits<int>::max();
        places[k] = i;
    }
    Sort(temp).SortBlockedToStriped(keys, places);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        const int i = threadIdx.x + 32 * k;
        if (i < columns)
            y[blockIdx.x * columns + i] = x[blockIdx.x * columns + places[k]] == keys[k] ? keys[k] : -5000;
    }
}
