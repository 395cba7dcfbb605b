// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "cuda::device::memcpy_async_tx and a barrier that counts bytes"
arguments = ["n", "x", "y"]

[launch]
block = [64]
grid = ["cdiv(n, 128)"]
*/
#include <cuda/barrier>
#include <cuda/ptx>
#include <cuda/std/utility>
#pragma nv_diag_suppress static_var_with_dynamic_init

__global__ void bulk_copy(int n, const float *x, float *y)
{
    using barrier = cuda::barrier<cuda::thread_scope_block>;
    __shared__ alignas(16) float in[128];
    __shared__ barrier bar;
    const int first = blockIdx.x * 128, count = min(128, n - first), whole = count / 4 * 4;
    if (threadIdx.x == 0) {
        init(&bar, blockDim.x);
        cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
    }
    __syncthreads();
    barrier::arrival_token token;
    if (threadIdx.x == 0) {
        if (whole)
            cuda::device::memcpy_async_tx(in, x + first, cuda::aligned_size_t<16>(4 * whole), bar);
        token = cuda::device::barrier_arrive_tx(bar, 1, 4 * whole);
    } else {
        token = bar.arrive();
    }
    bar.wait(cuda::std::move(token));
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        const float v = i < whole ? in[i] : x[first + i];
        y[first + i] = 1 + v * (2 + v * (3 + v * 4));
    }
}
