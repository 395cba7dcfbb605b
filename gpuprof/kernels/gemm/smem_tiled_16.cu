// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "16x16 tiles in shared memory"
problem = "gemm"
rung = 210
study = "C"
aliases = ["opencl_10_3"]
idea = "A 16x16 block shares one 16x16 tile of A and one of B per step; each thread computes one element of C."
after = "smem_tiled"
change = "smem_tiled with an edge fixed at 16, so that the inner loop unrolls and loads of A widen: shared_load_wavefronts fall by a quarter, but half the edge loads twice the global_load_sectors."
bottleneck = "Shared-memory load instructions: two loads still feed each FMA."
reference = "Study C, section 10.3"
dtypes = ["f32"]
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]

[moves]
shared_load_wavefronts = "falls"
global_load_sectors = "rises"

[launch]
block = [16, 16]
grid = ["cdiv(N, BS)", "cdiv(M, BS)"]

[parameters]
BS = 16 # edge of the block and of its tiles

[[require]]
condition = "block_x == BS and block_y == BS"
because = "smem_tiled_16 has one thread for each element of a square tile: the block must be BS x BS"
*/

extern "C" __global__ void __launch_bounds__(BS * BS)
    smem_tiled_16(int M, int N, int K, real alpha, const real *A, const real *B, real beta, real *C)
{
    // Coordinates: x walks columns.
    const int tx = threadIdx.x;           // 0 .. BS-1
    const int ty = threadIdx.y;           // 0 .. BS-1
    const int col = blockIdx.x * BS + tx; // 0 .. N-1
    const int row = blockIdx.y * BS + ty; // 0 .. M-1

    // Shared memory: 2 KiB where BS is 16.
    __shared__ real As[BS][BS]; // (row of C, k)
    __shared__ real Bs[BS][BS]; // (k, column of C)

    // Pointers.
    const real *a = A + (size_t)row * K + tx;
    const real *b = B + (size_t)ty * N + col;
    real *c = C + (size_t)row * N + col;

    real sum = 0;
    for (int k0 = 0; k0 < K; k0 += BS) {
        // Load; zeros beyond the matrix.
        As[ty][tx] = row < M && k0 + tx < K ? *a : real(0);
        Bs[ty][tx] = col < N && k0 + ty < K ? *b : real(0);
        a += BS;
        b += (size_t)BS * N;
        __syncthreads();

        // Compute.
#pragma unroll
        for (int k = 0; k < BS; ++k)
            sum += As[ty][k] * Bs[k][tx];
        __syncthreads();
    }

    // Write back; with beta = 0 the old content of C is never read.
    if (row < M && col < N)
        *c = beta == 0 ? alpha * sum : alpha * sum + beta * *c;
}
