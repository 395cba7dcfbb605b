// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "cub::BlockScan by warps, exclusive, of a type of one's own, and a prefix that is passed on"
arguments = ["columns", "x", "y"]

[launch]
block = [64]
grid = ["rows"]
*/
#include <cub/block/block_scan.cuh>

struct Pair {
    float sum;
    int count;
};

struct Join {
    __device__ Pair operator()(const Pair &a, const Pair &b) const { return {a.sum + b.sum, a.count + b.count}; }
};

__global__ void cub_exclusive(int columns, const float *x, float *y)
{
    using Scan = cub::BlockScan<Pair, 64, cub::BLOCK_SCAN_WARP_SCANS>;
    __shared__ typename Scan::TempStorage temp;
    Pair carried = {0, 0};
    for (int first = 0; first < columns; first += 64) {
        const int i = first + threadIdx.x;
        const float v = i < columns ? x[blockIdx.x * columns + i] : 0;
        Pair before, all;
        Scan(temp).ExclusiveScan(Pair{v, 1}, before, Pair{0, 0}, Join(), all);
        __syncthreads();
        if (i < columns && before.count == threadIdx.x)
            y[blockIdx.x * columns + i] = carried.sum + before.sum + v;
        carried = Join()(carried, all);
    }
}
