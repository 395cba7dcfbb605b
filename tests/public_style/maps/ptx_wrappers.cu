// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "cuda::ptx: special registers, cp.async.bulk, mbarriers"
arguments = ["n", "x", "y"]

[launch]
block = [32]
grid = ["cdiv(n, 64)"]
*/
#include <cuda/ptx>
namespace ptx = cuda::ptx;

__global__ void ptx_wrappers(int n, const float *x, float *y)
{
    __shared__ alignas(16) float in[64];
    __shared__ alignas(8) unsigned long long bar;
    const int first = blockIdx.x * 64, whole = min(64, n - first) / 4 * 4;
    if (ptx::get_sreg_laneid() == 0) {
        ptx::mbarrier_init(&bar, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, 4 * whole);
        if (whole)
            ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, in, x + first, 4 * whole, &bar);
    }
    __syncwarp();
    while (!ptx::mbarrier_try_wait_parity(&bar, 0))
        ;
    for (unsigned i = ptx::get_sreg_laneid(); i < 64 && first + i < n; i += 32) {
        const float v = i < whole ? in[i] : x[first + i];
        y[first + i] = 1 + v * (2 + v * (3 + v * 4));
    }
}
