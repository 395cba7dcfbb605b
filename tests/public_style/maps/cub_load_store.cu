// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "cub::BlockLoad and BlockStore by transposing, of a tile that is not full"
arguments = ["n", "x", "y"]

[launch]
block = [64]
grid = ["cdiv(n, 256)"]
*/
#include <cub/block/block_load.cuh>
#include <cub/block/block_store.cuh>

__global__ void cub_load_store(int n, const float *x, float *y)
{
    using Load = cub::BlockLoad<float, 64, 4, cub::BLOCK_LOAD_TRANSPOSE>;
    using Store = cub::BlockStore<float, 64, 4, cub::BLOCK_STORE_WARP_TRANSPOSE>;
    __shared__ union {
        typename Load::TempStorage load;
        typename Store::TempStorage store;
    } temp;
    float items[4];
    const int first = blockIdx.x * 256;
    Load(temp.load).Load(x + first, items, n - first, 0.f);
    __syncthreads();
#pragma unroll
    for (float &v : items)
        v = 1 + v * (2 + v * (3 + v * 4));
    Store(temp.store).Store(y + first, items, n - first);
}
