// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "cub::BlockMergeSort by a comparison of one's own, and cub::BlockExchange"
arguments = ["columns", "x", "y"]

[launch]
block = [64]
grid = ["rows"]

[[require]]
condition = "columns == 128"
because = "a block sorts a whole row"
*/
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_merge_sort.cuh>

struct Less {
    __device__ bool operator()(const int &a, const int &b) const { return a < b; }
};

__global__ void cub_merge_sort(int columns, const int *x, int *y)
{
    using Exchange = cub::BlockExchange<int, 64, 2>;
    using Sort = cub::BlockMergeSort<int, 64, 2>;
    __shared__ union {
        typename Exchange::TempStorage exchange;
        typename Sort::TempStorage sort;
    } temp;
    int v[2] = {x[blockIdx.x * 128 + threadIdx.x], x[blockIdx.x * 128 + 64 + threadIdx.x]};
    Exchange(temp.exchange).StripedToBlocked(v, v);
    __syncthreads();
    Sort(temp.sort).Sort(v, Less());
    __syncthreads();
    Exchange(temp.exchange).BlockedToStriped(v, v);
    y[blockIdx.x * 128 + threadIdx.x] = v[0];
    y[blockIdx.x * 128 + 64 + threadIdx.x] = v[1];
}
