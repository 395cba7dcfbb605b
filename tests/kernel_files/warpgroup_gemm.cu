// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// C = A B^T in halves, summed in f32: one warpgroup a block, tiles of 64 by 64, two of them in flight.
/*gpuprof
title = "Tensor copies feed a warpgroup"
arguments = ["M", "N", "K", "A_map", "B_map", "C"]
entry = "warpgroup_gemm"
dtypes = ["f16"]
define = { HALF = '"f16"' }
operation = "gemm_nt"
dimensions = ["M", "N", "K"]
default_sizes = "128x128x128"
[arrays.A]
shape = ["M", "K"]
[arrays.B]
shape = ["N", "K"]
[arrays.C]
shape = ["M", "N"]
role = "out"
dtype = "f32"
[inputs]
A = "integers(-8, 9)"
B = "integers(-8, 9)"
[work]
flops = "2 * M * N * K"
bytes = "real_bytes * (M * K + N * K) + 4 * M * N"
rate = "flops"
[check]
C = { value = "A @ transpose(B)", equal = true }

[tensor_maps.A_map]
array = "A"
box = ["64", "64"]
swizzle_bytes = 128

[tensor_maps.B_map]
array = "B"
box = ["64", "64"]
swizzle_bytes = 128

[launch]
block = [128]
grid = ["cdiv(N, 64)", "cdiv(M, 64)"]
dynamic_shared_bytes = "2 * 2 * 64 * 64 * 2"

[[require]]
condition = "arch >= 90 and arch < 100"
because = "{id} uses wgmma, which only compute capability 9.0 has"
*/

#include "hopper.cuh"

#define STAGE_BYTES (2 * 64 * 64 * 2)

// What a descriptor says of a tile of 64 rows by 128 bytes, swizzled: rows of 8 are 1024 bytes apart.
static __device__ __forceinline__ unsigned long long descriptor(unsigned address)
{
    return 1ull << 62 | 64ull << 32 | 1ull << 16 | (address & 0x3FFFF) >> 4;
}

extern "C" __global__ void __launch_bounds__(128)
    warpgroup_gemm(int M, int N, int K, const __grid_constant__ TensorMap A_map,
                   const __grid_constant__ TensorMap B_map, float *C)
{
    extern __shared__ __align__(1024) char tiles[];
    __shared__ unsigned long long arrived[2];
    const int t = threadIdx.x;
    const int m0 = blockIdx.y * 64, n0 = blockIdx.x * 64, steps = (K + 63) / 64;
    if (t == 0) {
        set_up(at(arrived), 1);
        set_up(at(arrived + 1), 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    const auto fetch = [&](int step) {
        if (t != 0)
            return;
        const unsigned barrier = at(arrived + step % 2), stage = at(tiles) + step % 2 * STAGE_BYTES;
        expect(barrier, STAGE_BYTES);
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                     " [%0], [%1, {%2, %3}], [%4];" ::"r"(stage), "l"(&A_map), "r"(step * 64), "r"(m0),
                     "r"(barrier) : "memory"); // fetch A
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                     " [%0], [%1, {%2, %3}], [%4];" ::"r"(stage + STAGE_BYTES / 2), "l"(&B_map),
                     "r"(step * 64), "r"(n0), "r"(barrier) : "memory"); // fetch B
    };
    float d[32];
    for (int i = 0; i < 32; ++i)
        d[i] = 0;
    fetch(0);
    for (int step = 0; step < steps; ++step) {
        if (step + 1 < steps)
            fetch(step + 1);
        wait(at(arrived + step % 2), step / 2 % 2);
        const unsigned stage = at(tiles) + step % 2 * STAGE_BYTES;
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int k = 0; k < 4; ++k)
            asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32." HALF "." HALF
                         " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,"
                         " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31},"
                         " %32, %33, 1, 1, 1, 0, 0;"
                         : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
                           "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]),
                           "+f"(d[13]),
                           "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]),
                           "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]),
                           "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
                         : "l"(descriptor(stage + k * 32)), "l"(descriptor(stage + STAGE_BYTES / 2 + k * 32))
                         : "memory");
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); // multiplied
        __syncthreads(); // free
    }
    const int row = m0 + t / 32 * 16 + t % 32 / 4, column = n0 + t % 4 * 2;
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        const int r = row + i / 2 % 2 * 8, c = column + i / 4 * 8 + i % 2;
        if (r < M && c < N)
            C[(size_t)r * N + c] = d[i];
    }
}
