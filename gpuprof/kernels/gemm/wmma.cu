// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Tensor cores by wmma"
problem = "gemm"
rung = 660
dtypes = ["bf16", "f16"]
idea = "A warp multiplies matrices of 16x16 as one: 8 warps share tiles of A and B in shared memory, and each holds 64x32 sums in float32. C++ names the fragments, not what lies in which lane."
change = "The first rung on tensor cores."
bottleneck = "Bank conflicts: rows of a fragment lie 64 or 256 bytes apart in shared memory. All warps wait while the next tile comes from memory, and C takes a way through shared memory because nobody knows which lane holds what."
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]

[launch]
block = [256]
grid = ["cdiv(N, BN)", "cdiv(M, BM)"]

[constants]
BM = 128 # rows of C per block
BN = 128 # columns of C per block
BK = 32  # k per tile

[[require]]
condition = "arch >= 80"
because = "{id} multiplies bfloat16 on tensor cores, which needs compute capability 8.0"
*/

#include <mma.h>

#define THREADS BLOCK_X
#define WM 64 // rows of C per warp
#define WN 32 // columns of C per warp
#define WARPS_N (BN / WN)
#define A_TURNS (BM * BK / 8 / THREADS) // pieces of 8 neighbours of a row that a thread loads
#define B_TURNS (BK * BN / 8 / THREADS)

#include "tensor_core.cuh"

namespace warp_matrix = nvcuda::wmma;

template <bool VECTOR>
static __device__ __forceinline__ void multiply(int M, int N, int K, float alpha, const real *A, const real *B,
                                                float beta, real *C)
{
    __shared__ __align__(128) real As[BM * BK]; // (row of C, k)
    __shared__ __align__(128) real Bs[BK * BN]; // (k, column of C)
    __shared__ __align__(128) float Cs[THREADS / 32][16 * 16];

    // Coordinates.
    const int t = threadIdx.x;
    const int lane = t % 32;
    const int warp = t / 32;
    const int m_warp = warp / WARPS_N * WM;
    const int n_warp = warp % WARPS_N * WN;
    const int m0 = blockIdx.y * BM;
    const int n0 = blockIdx.x * BN;

    warp_matrix::fragment<warp_matrix::accumulator, 16, 16, 16, float> sum[WM / 16][WN / 16];
#pragma unroll
    for (int i = 0; i < WM / 16; ++i)
#pragma unroll
        for (int j = 0; j < WN / 16; ++j)
            warp_matrix::fill_fragment(sum[i][j], 0.0f);

#pragma unroll 1
    for (int k0 = 0; k0 < K; k0 += BK) {
        // Load a tile of A and one of B, zeros beyond the matrix.
#pragma unroll
        for (int i = 0; i < A_TURNS; ++i) {
            const int row = (i * THREADS + t) / (BK / 8);
            const int k = (i * THREADS + t) % (BK / 8) * 8;
            *(uint4 *)&As[row * BK + k] =
                load8<VECTOR>(A + (size_t)(m0 + row) * K + k0 + k, m0 + row < M ? K - k0 - k : 0);
        }
#pragma unroll
        for (int i = 0; i < B_TURNS; ++i) {
            const int k = (i * THREADS + t) / (BN / 8);
            const int column = (i * THREADS + t) % (BN / 8) * 8;
            *(uint4 *)&Bs[k * BN + column] =
                load8<VECTOR>(B + (size_t)(k0 + k) * N + n0 + column, k0 + k < K ? N - n0 - column : 0);
        }
        __syncthreads();

        // Compute.
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            warp_matrix::fragment<warp_matrix::matrix_a, 16, 16, 16, real, warp_matrix::row_major> a[WM / 16];
            warp_matrix::fragment<warp_matrix::matrix_b, 16, 16, 16, real, warp_matrix::row_major> b[WN / 16];
#pragma unroll
            for (int i = 0; i < WM / 16; ++i)
                warp_matrix::load_matrix_sync(a[i], &As[(m_warp + i * 16) * BK + k], BK);
#pragma unroll
            for (int j = 0; j < WN / 16; ++j)
                warp_matrix::load_matrix_sync(b[j], &Bs[k * BN + n_warp + j * 16], BN);
#pragma unroll
            for (int i = 0; i < WM / 16; ++i)
#pragma unroll
                for (int j = 0; j < WN / 16; ++j)
                    warp_matrix::mma_sync(sum[i][j], a[i], b[j], sum[i][j]);
        }
        __syncthreads();
    }

    // Write back, by way of shared memory: a lane writes 8 neighbours of a row.
#pragma unroll
    for (int i = 0; i < WM / 16; ++i)
#pragma unroll
        for (int j = 0; j < WN / 16; ++j) {
            warp_matrix::store_matrix_sync(Cs[warp], sum[i][j], 16, warp_matrix::mem_row_major);
            __syncwarp();
            const int row = m0 + m_warp + i * 16 + lane / 2;
            const int column = n0 + n_warp + j * 16 + lane % 2 * 8;
            if (row < M)
#pragma unroll
                for (int q = 0; q < 8; q += 2) {
                    const float2 v = *(const float2 *)&Cs[warp][lane * 8 + q];
                    write2<VECTOR>(C + (size_t)row * N + column + q, N - column - q, alpha, v.x, v.y, beta);
                }
            __syncwarp();
        }
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
    wmma(int M, int N, int K, float alpha, const real *A, const real *B, float beta, real *C)
{
    if (K % 8 == 0 && N % 8 == 0 && ((size_t)A | (size_t)B | (size_t)C) % 16 == 0)
        multiply<true>(M, N, K, alpha, A, B, beta, C);
    else
        multiply<false>(M, N, K, alpha, A, B, beta, C);
}
