// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "cub::BlockScan of four items a thread, with a prefix that a callback carries"
arguments = ["columns", "x", "y"]

[launch]
block = [32]
grid = ["rows"]
*/
#include <cub/block/block_load.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>

struct Running {
    float total = 0;
    __device__ float operator()(float aggregate)
    {
        const float before = total;
        total += aggregate;
        return before;
    }
};

__global__ void cub_block_scan(int columns, const float *x, float *y)
{
    constexpr int threads = 32, items = 4, tile = threads * items;
    using Load = cub::BlockLoad<float, threads, items, cub::BLOCK_LOAD_DIRECT>;
    using Scan = cub::BlockScan<float, threads, cub::BLOCK_SCAN_RAKING>;
    using Store = cub::BlockStore<float, threads, items, cub::BLOCK_STORE_TRANSPOSE>;
    __shared__ union {
        typename Load::TempStorage load;
        typename Scan::TempStorage scan;
        typename Store::TempStorage store;
    } temp;
    Running prefix;
    for (int first = 0; first < columns; first += tile) {
        const int at = blockIdx.x * columns + first, valid = min(tile, columns - first);
        float v[items];
        Load(temp.load).Load(x + at, v, valid, 0.f);
        __syncthreads();
        Scan(temp.scan).InclusiveSum(v, v, prefix);
        __syncthreads();
        Store(temp.store).Store(y + at, v, valid);
        __syncthreads();
    }
}
