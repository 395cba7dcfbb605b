// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Fragments by ldmatrix"
problem = "gemm"
rung = 662
dtypes = ["bf16", "f16"]
idea = "mma.sync says which lane holds which element, and ldmatrix brings four tiles of 8x8 to their lanes at once, those of B turned."
after = "wmma"
change = "A lane knows where its sums belong and writes them itself: C no longer passes through shared memory, and shared_store_requests fall."
bottleneck = "Bank conflicts: the eight rows that ldmatrix reads at once start in two of A's four 16-byte columns of banks, or all in one of B's."
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]

[moves]
shared_store_requests = "falls"
shared_load_requests = "falls"

[launch]
block = [256]
grid = ["cdiv(N, BN)", "cdiv(M, BM)"]

[constants]
BM = 128 # rows of C per block
BN = 128 # columns of C per block
BK = 32  # k per tile
WIDE = "K % 8 == 0 and N % 8 == 0" # rows start at multiples of 16 bytes

[[require]]
condition = "arch >= 80"
because = "{id} multiplies bfloat16 on tensor cores, which needs compute capability 8.0"
*/

#define THREADS BLOCK_X
#define WM 64 // rows of C per warp
#define WN 32 // columns of C per warp
#define WARPS_N (BN / WN)
#define A_TURNS (BM * BK / 8 / THREADS) // pieces of 8 neighbours of a row that a thread loads
#define B_TURNS (BK * BN / 8 / THREADS)

#include "tensor_core.cuh"

// Where a piece of 8 neighbours lies in shared memory: k and row of A's tile, column and k of B's.
static __device__ __forceinline__ int place_a(int row, int k)
{
    return row * BK + k;
}
static __device__ __forceinline__ int place_b(int k, int column)
{
    return k * BN + column;
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
    mma_sync(int M, int N, int K, float alpha, const real *A, const real *B, float beta, real *C)
{
    __shared__ __align__(128) real As[BM * BK];
    __shared__ __align__(128) real Bs[BK * BN];

    // Coordinates.
    const int t = threadIdx.x;
    const int lane = t % 32;
    const int warp = t / 32;
    const int m_warp = warp / WARPS_N * WM;
    const int n_warp = warp % WARPS_N * WN;
    const int m0 = blockIdx.y * BM;
    const int n0 = blockIdx.x * BN;
    const unsigned a_tile = (unsigned)__cvta_generic_to_shared(As);
    const unsigned b_tile = (unsigned)__cvta_generic_to_shared(Bs);

    float sum[WM / 16][WN / 8][4] = {};
#pragma unroll 1
    for (int k0 = 0; k0 < K; k0 += BK) {
        // Load a tile of A and one of B, zeros beyond the matrix.
#pragma unroll
        for (int i = 0; i < A_TURNS; ++i) {
            const int row = (i * THREADS + t) / (BK / 8);
            const int k = (i * THREADS + t) % (BK / 8) * 8;
            *(uint4 *)&As[place_a(row, k)] =
                load8<WIDE>(A + (size_t)(m0 + row) * K + k0 + k, m0 + row < M ? K - k0 - k : 0);
        }
#pragma unroll
        for (int i = 0; i < B_TURNS; ++i) {
            const int k = (i * THREADS + t) / (BN / 8);
            const int column = (i * THREADS + t) % (BN / 8) * 8;
            *(uint4 *)&Bs[place_b(k, column)] =
                load8<WIDE>(B + (size_t)(k0 + k) * N + n0 + column, k0 + k < K ? N - n0 - column : 0);
        }
        __syncthreads();

        // Compute.
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            unsigned a[WM / 16][4];
            unsigned b[WN / 16][4];
#pragma unroll
            for (int i = 0; i < WM / 16; ++i)
                load_tiles(a[i], a_tile + 2 * place_a(m_warp + i * 16 + lane % 16, k + lane / 16 * 8));
#pragma unroll
            for (int j = 0; j < WN / 16; ++j)
                load_turned(b[j], b_tile + 2 * place_b(k + lane % 16, n_warp + j * 16 + lane / 16 * 8));
#pragma unroll
            for (int i = 0; i < WM / 16; ++i)
#pragma unroll
                for (int j = 0; j < WN / 8; ++j)
                    multiply_add(sum[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
        }
        __syncthreads();
    }

    // Write back: a lane has two neighbours of a row, and two of the row eight further down.
#pragma unroll
    for (int i = 0; i < WM / 16; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = m0 + m_warp + i * 16 + half * 8 + lane / 4;
            if (row >= M)
                continue;
#pragma unroll
            for (int j = 0; j < WN / 8; ++j) {
                const int column = n0 + n_warp + j * 8 + lane % 4 * 2;
                write2<WIDE>(C + (size_t)row * N + column, N - column, alpha, sum[i][j][half * 2],
                             sum[i][j][half * 2 + 1], beta);
            }
        }
}
