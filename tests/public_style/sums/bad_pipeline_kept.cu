// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A pipeline whose stages nobody gives back"
arguments = ["columns", "x", "y"]

[launch]
block = [64]
grid = ["rows"]
*/
// executor: failed
// gpu: timeout
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda/pipeline>
#pragma nv_diag_suppress static_var_with_dynamic_init
namespace cg = cooperative_groups;

__global__ void bad_pipeline_kept(int columns, const float *x, float *y)
{
    constexpr int stages = 2, part = 64;
    auto block = cg::this_thread_block();
    __shared__ float buffer[stages][part];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
    __shared__ float warps[2];
    auto pipe = cuda::make_pipeline(block, &state);
    const float *row = x + blockIdx.x * columns;
    const int parts = (columns + part - 1) / part;
    float sum = 0;
    for (int compute = 0, fetch = 0; compute < parts; ++compute) {
        for (; fetch < parts && fetch < compute + stages; ++fetch) {
            pipe.producer_acquire(); // <- here
            const int i = fetch * part + threadIdx.x;
            if (i < columns)
                cuda::memcpy_async(&buffer[fetch % stages][threadIdx.x], row + i, sizeof(float), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        const int i = compute * part + part - 1 - threadIdx.x;
        if (i < columns)
            sum += buffer[compute % stages][part - 1 - threadIdx.x];
    }
    auto warp = cg::tiled_partition<32>(block);
    sum = cg::reduce(warp, sum, cg::plus<float>());
    if (warp.thread_rank() == 0)
        warps[warp.meta_group_rank()] = sum;
    block.sync();
    if (threadIdx.x == 0)
        y[blockIdx.x] = warps[0] + warps[1];
}
