// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A producer that waits for no free stage"
arguments = ["n", "x", "y"]

[launch]
block = [128]
grid = ["2"]
*/
// executor: failed
// gpu: any: the consumers may be quick
#include <cooperative_groups.h>
#include <cuda/pipeline>
#pragma nv_diag_suppress static_var_with_dynamic_init
namespace cg = cooperative_groups;

__global__ void bad_roles_no_acquire(int n, const float *x, float *y)
{
    constexpr int stages = 3, tile = 96;
    __shared__ float buffer[stages][tile];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
    auto block = cg::this_thread_block();
    const auto role = block.thread_rank() < 32 ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
    auto pipe = cuda::make_pipeline(block, &state, role);
    const int tiles = (n + tile - 1) / tile;
    for (int t = blockIdx.x, stage = 0; t < tiles; t += gridDim.x, stage = (stage + 1) % stages) {
        if (role == cuda::pipeline_role::producer) {
            for (int i = threadIdx.x; i < tile && t * tile + i < n; i += 32)
                cuda::memcpy_async(&buffer[stage][i], x + t * tile + i, sizeof(float), pipe); // <- here
            pipe.producer_commit();
        } else {
            pipe.consumer_wait();
            const int i = threadIdx.x - 32;
            if (t * tile + i < n) {
                const float v = buffer[stage][i];
                y[t * tile + i] = 1 + v * (2 + v * (3 + v * 4));
            }
            pipe.consumer_release();
        }
    }
}
