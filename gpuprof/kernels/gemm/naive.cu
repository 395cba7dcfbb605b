// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "One thread per element"
problem = "gemm"
rung = 10
study = "A"
aliases = ["gemmOnGPU2D"]
idea = "Each thread computes one element of C and walks K alone; x walks the columns of C."
change = "The first rung: the triple loop with its two outer loops spread over threads."
bottleneck = "Load instructions: two loads feed each FMA, and every operand comes from the L1 or L2 cache."
reference = "Study A, gemmOnGPU2D"
dtypes = ["f32", "f64", "tf32"]
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]

[launch]
block = [32, 32]
any_block = true
grid = ["cdiv(N, block_x)", "cdiv(M, block_y)"]

[candidates]
block = [[8, 8], [16, 16], [32, 8], [32, 16], [32, 32], [64, 4], [128, 2], [256]]

[[published]]
size = "128"
time_ms = 0.028809

[[published]]
size = "4096"
time_ms = 95.804932
note = "warp occupancy 66.66 %, global load throughput 3.16 TB/s, global load efficiency 82.5 %"
*/

extern "C" __global__ void naive(int M, int N, int K, real alpha, const real *A, const real *B, real beta, real *C)
{
    // Coordinates: x walks columns, so the 32 lanes of a warp share one row of A and read neighbours in B.
    const int col = blockIdx.x * blockDim.x + threadIdx.x; // 0 .. N-1
    const int row = blockIdx.y * blockDim.y + threadIdx.y; // 0 .. M-1
    if (row >= M || col >= N)
        return;

    // Pointers. Offsets are 64-bit: a matrix may hold more than 2^31 elements.
    const real *a = A + (size_t)row * K;
    const real *b = B + col;
    real *c = C + (size_t)row * N + col;

    // Compute: per k a warp's load of A is a broadcast of 4 bytes, its load of B a coalesced 128 bytes.
    real sum = 0;
    for (int k = 0; k < K; ++k)
        sum += a[k] * b[(size_t)k * N];

    // Write back; with beta = 0 the old content of C is never read.
    *c = beta == 0 ? alpha * sum : alpha * sum + beta * *c;
}
