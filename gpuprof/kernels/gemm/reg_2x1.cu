// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Two rows per thread in registers"
problem = "gemm"
rung = 40
study = "A"
aliases = ["gemmOnGPU2DRegMem"]
idea = "Each thread computes rows ty and ty + 16 of a 32x32 tile, so that one load of B feeds two FMAs."
after = "smem_tiled"
change = "Half as many threads do twice the work each, and the tile edge is known when compiling: the inner loop unrolls, and shared_load_wavefronts halve."
bottleneck = "Shared-memory load instructions: still more than one load for each FMA."
reference = "Study A, gemmOnGPU2DRegMem; the study needs square sizes that are multiples of 32 and mis-strides B otherwise, here any size"
dtypes = ["f32", "f64"]
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]

[moves]
shared_load_wavefronts = "falls"
barriers = "falls"
block_threads = "falls"

[launch]
block = [32, 16]
grid = ["cdiv(N, TILE)", "cdiv(M, TILE)"]

[parameters]
TILE = 32

[[require]]
condition = "TILE == block_x and TILE == 2 * block_y"
because = "reg_2x1 gives each thread two rows of a square tile: the block must be TILE x TILE/2"

[[published]]
size = "128"
time_ms = 0.011963

[[published]]
size = "4096"
time_ms = 33.145020
note = "warp occupancy 99.57 %, global load throughput 437.30 GB/s, global load efficiency 100 %"
*/

#define HALF (TILE / 2)

extern "C" __global__ void reg_2x1(int M, int N, int K, real alpha, const real *A, const real *B, real beta, real *C)
{
    // Coordinates: this thread's rows are row and row + HALF.
    const int tx = threadIdx.x;                // 0 .. TILE-1
    const int ty = threadIdx.y;                // 0 .. HALF-1
    const int col = blockIdx.x * TILE + tx;    // 0 .. N-1
    const int row = blockIdx.y * TILE + ty;    // 0 .. M-1

    // Shared memory.
    __shared__ real As[TILE][TILE]; // (row of C, k)
    __shared__ real Bs[TILE][TILE]; // (k, column of C)

    // Pointers.
    const real *a_low = A + (size_t)row * K;
    const real *a_high = a_low + (size_t)HALF * K;
    const real *b = B + col;
    real *c_low = C + (size_t)row * N + col;
    real *c_high = c_low + (size_t)HALF * N;

    real sum_low = 0;
    real sum_high = 0;
    for (int k0 = 0; k0 < K; k0 += TILE) {
        // Load two rows of each tile; zeros beyond the matrix.
        const int k_low = k0 + ty;
        const int k_high = k_low + HALF;
        As[ty][tx] = row < M && k0 + tx < K ? a_low[k0 + tx] : real(0);
        As[ty + HALF][tx] = row + HALF < M && k0 + tx < K ? a_high[k0 + tx] : real(0);
        Bs[ty][tx] = col < N && k_low < K ? b[(size_t)k_low * N] : real(0);
        Bs[ty + HALF][tx] = col < N && k_high < K ? b[(size_t)k_high * N] : real(0);
        __syncthreads();

        // Compute: one element of B serves both rows.
#pragma unroll
        for (int k = 0; k < TILE; ++k) {
            const real b_k = Bs[k][tx];
            sum_low += As[ty][k] * b_k;
            sum_high += As[ty + HALF][k] * b_k;
        }
        __syncthreads();
    }

    // Write back.
    if (col < N && row < M)
        *c_low = beta == 0 ? alpha * sum_low : alpha * sum_low + beta * *c_low;
    if (col < N && row + HALF < M)
        *c_high = beta == 0 ? alpha * sum_high : alpha * sum_high + beta * *c_high;
}
