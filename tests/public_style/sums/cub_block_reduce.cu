// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "cub::BlockReduce"
arguments = ["columns", "x", "y"]
entry = "sum_rows<128>"

[launch]
block = [128]
grid = ["rows"]
*/
#include <cub/block/block_reduce.cuh>

template <int BLOCK_THREADS>
__global__ void sum_rows(int columns, const float *x, float *y)
{
    using BlockReduce = cub::BlockReduce<float, BLOCK_THREADS>;
    __shared__ typename BlockReduce::TempStorage temp_storage;
    float v = 0;
    for (int i = threadIdx.x; i < columns; i += BLOCK_THREADS)
        v += x[blockIdx.x * columns + i];
    const float aggregate = BlockReduce(temp_storage).Reduce(v, cub::Sum());
    if (threadIdx.x == 0)
        y[blockIdx.x] = aggregate;
}
