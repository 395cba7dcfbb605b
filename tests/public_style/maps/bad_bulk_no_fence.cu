// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A bulk copy out of shared memory without the fence between the proxies"
arguments = ["n", "x", "y"]

[launch]
block = [64]
grid = ["cdiv(n, 64)"]
*/
// executor: failed: missing proxy fence
// gpu: any: the stores have mostly arrived
#include <cuda/ptx>
namespace ptx = cuda::ptx;

__global__ void bad_bulk_no_fence(int n, const float *x, float *y)
{
    __shared__ alignas(16) float out[64];
    const int first = blockIdx.x * 64, i = first + threadIdx.x, whole = min(64, n - first) / 4 * 4;
    const float v = i < n ? x[i] : 0;
    out[threadIdx.x] = 1 + v * (2 + v * (3 + v * 4));
    __syncthreads();
    if (threadIdx.x == 0 && whole) {
        ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, y + first, out, 4 * whole); // <- here
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
    }
    if (i < n && threadIdx.x >= whole)
        y[i] = out[threadIdx.x];
}
