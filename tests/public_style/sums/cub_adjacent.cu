// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "cub::BlockAdjacentDifference, BlockDiscontinuity and BlockShuffle undo and redo a row"
arguments = ["columns", "x", "y"]

[launch]
block = [64]
grid = ["rows"]
*/
#include <cub/block/block_adjacent_difference.cuh>
#include <cub/block/block_discontinuity.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_shuffle.cuh>

struct Minus {
    __device__ float operator()(const float &a, const float &b) const { return a - b; }
};

struct Unequal {
    __device__ bool operator()(const float &a, const float &b) const { return a != b; }
};

// The last element of the row of running differences' sums is the last element itself: sums of each place's rest.
__global__ void cub_adjacent(int columns, const float *x, float *y)
{
    using Difference = cub::BlockAdjacentDifference<float, 64>;
    using Heads = cub::BlockDiscontinuity<float, 64>;
    using Shift = cub::BlockShuffle<float, 64>;
    using Reduce = cub::BlockReduce<float, 64>;
    __shared__ union {
        typename Difference::TempStorage difference;
        typename Heads::TempStorage heads;
        typename Shift::TempStorage shift;
        typename Reduce::TempStorage reduce;
    } temp;
    float v[5], d[5], before = 0;
    int heads[5];
    for (int k = 0; k < 5; ++k) {
        const int i = threadIdx.x * 5 + k;
        v[k] = i < columns ? x[blockIdx.x * columns + i] : 0;
    }
    Difference(temp.difference).SubtractLeft(v, d, Minus());
    __syncthreads();
    Heads(temp.heads).FlagHeads(heads, v, Unequal());
    __syncthreads();
    Shift(temp.shift).Offset(v[4], before, -1);
    __syncthreads();
    float sum = 0, last = threadIdx.x ? before : 0;
    for (int k = 0; k < 5; ++k) {
        last = threadIdx.x || k ? last + (heads[k] ? d[k] : 0) : d[0];
        sum += last;
    }
    sum = Reduce(temp.reduce).Sum(sum);
    if (threadIdx.x == 0)
        y[blockIdx.x] = sum;
}
