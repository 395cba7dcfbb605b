// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Column-major, one thread per element"
problem = "gemm"
rung = 310
study = "D"
aliases = ["mysgemm_v1"]
idea = "Each thread computes one element of C; x walks the rows, which lie side by side in column-major storage."
after = "naive"
change = "naive for column-major arrays: now x must walk rows, and no counter moves; load efficiency is 82.5 % as in naive."
bottleneck = "Load instructions: two loads feed each FMA, and every operand comes from the L1 or L2 cache."
reference = "Study D, mysgemm_v1"
layout = "col"
dtypes = ["f32"]
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]

[moves]
global_load_efficiency_pct = "stays"
global_load_sectors = "stays"

[launch]
block = [32, 32]
any_block = true
grid = ["cdiv(M, block_x)", "cdiv(N, block_y)"]

[candidates]
block = [[8, 8], [16, 16], [32, 8], [32, 16], [32, 32], [64, 4], [128, 2], [256]]
*/

extern "C" __global__ void col_naive(int M, int N, int K, real alpha, const real *A, const real *B, real beta, real *C)
{
    // Coordinates: x walks rows, so the 32 lanes of a warp read neighbours in A and share one column of B.
    const int row = blockIdx.x * blockDim.x + threadIdx.x; // 0 .. M-1
    const int col = blockIdx.y * blockDim.y + threadIdx.y; // 0 .. N-1
    if (row >= M || col >= N)
        return;

    // Pointers: element (i, j) of A, B, C is at i + j * (M, K, M). Offsets are 64-bit: a matrix may hold more than
    // 2^31 elements.
    const real *a = A + row;
    const real *b = B + (size_t)col * K;
    real *c = C + row + (size_t)col * M;

    // Compute: per k a warp's load of A is a coalesced 128 bytes, its load of B a broadcast of 4 bytes.
    real sum = 0;
    for (int k = 0; k < K; ++k)
        sum += a[(size_t)k * M] * b[k];

    // Write back; with beta = 0 the old content of C is never read.
    *c = beta == 0 ? alpha * sum : alpha * sum + beta * *c;
}
