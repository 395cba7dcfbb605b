// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "FP32 from three TF32 products"
problem = "gemm"
rung = 690
idea = "Each number is split into two of TF32, 11 bits each, and tensor cores make three products of the four parts: what the fourth would add is below FP32's own rounding. A warp multiplies 16x8 by one instruction, mma.sync."
after = "reg_8x16_async"
change = "The arithmetic moves from CUDA cores to tensor cores: one instruction for 1024 multiply-adds, though three times as many products and the splitting."
bottleneck = "The splitting: every warp splits each operand that it uses anew, four instructions a number, and loads it from shared memory by itself."
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]

[moves]
ffma_thread_instructions = "falls"
warp_instructions = "falls"

[launch]
block = [256]
grid = ["cdiv(N, BN)", "cdiv(M, BM)"]
dynamic_shared_bytes = "STAGES * (BM * (BK + 4) + BK * (BN + 8)) * 4"

[constants]
BM = 128 # rows of C per block
BN = 128 # columns of C per block
BK = 16  # k per tile; tensor cores add up no more, as sums of more would lose what they truncate

[parameters]
STAGES = 3 # tiles in shared memory

[candidates]
STAGES = [3, 4, 5]

[[require]]
condition = "STAGES >= 3"
because = "{id} needs three STAGES or more: one is computed from, one was before, the others fill"

[[require]]
condition = "arch >= 80"
because = "{id} multiplies TF32, which needs compute capability 8.0"
*/

#define THREADS BLOCK_X
#define A_PITCH (BK + 4) // padded, so that lanes that read a column of 8 rows and 4 k, or 4 k and 8 columns, meet no bank twice
#define B_PITCH (BN + 8)
#define STAGE (BM * A_PITCH + BK * B_PITCH)
#define TILES_M 4 // of 16 rows, per warp
#define TILES_N 4 // of 8 columns
#define WARPS_N (BN / (TILES_N * 8))

#include "cp_async.cuh"
#include "split_tf32.cuh"

// 16 rows by 8 columns of C += 8 k of A by as many of B, on tensor cores.
static __device__ __forceinline__ void multiply_add(float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// The kernel, with 16-byte copies (WIDTH 4) where rows start at multiples of 16 bytes, else element by element.
template <int WIDTH>
static __device__ __forceinline__ void multiply(int M, int N, int K, float alpha, const float *A, const float *B,
                                                float beta, float *C)
{
    // Coordinates.
    const int t = threadIdx.x;
    const int lane_m = t % 32 / 4; // its group's row of A, and column of B
    const int lane_k = t % 4;
    const int m_warp = t / 32 / WARPS_N * TILES_M * 16;
    const int n_warp = t / 32 % WARPS_N * TILES_N * 8;
    const int m0 = blockIdx.y * BM;
    const int n0 = blockIdx.x * BN;
    const int tiles = (K + BK - 1) / BK;

    // Shared memory: (stage, row of C, k) and (stage, k, column of C). A fetch copies a tile of each, zeros beyond the
    // matrix, and closes a group of copies, if only an empty one.
    extern __shared__ __align__(16) float shared[];
    const auto fetch = [&](int tile) {
        if (tile < tiles) {
            float *As = shared + tile % STAGES * STAGE;
            float *Bs = As + BM * A_PITCH;
            const int k0 = tile * BK;
#pragma unroll
            for (int i = t; i < BM * BK / WIDTH; i += THREADS) {
                const int row = i / (BK / WIDTH);
                const int k = i % (BK / WIDTH) * WIDTH;
                copy<4 * WIDTH>(As + row * A_PITCH + k, A + (size_t)(m0 + row) * K + k0 + k, m0 + row < M && k0 + k < K);
            }
#pragma unroll
            for (int i = t; i < BK * BN / WIDTH; i += THREADS) {
                const int k = i / (BN / WIDTH);
                const int column = i % (BN / WIDTH) * WIDTH;
                copy<4 * WIDTH>(Bs + k * B_PITCH + column, B + (size_t)(k0 + k) * N + n0 + column,
                                k0 + k < K && n0 + column < N);
            }
        }
        close_group();
    };
    for (int i = 0; i < STAGES - 1; ++i)
        fetch(i);

    float sum[TILES_M][TILES_N][4] = {};
#pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
        // Sync: this tile is complete, and nobody reads any more from the one before, whose stage fills next.
        wait_for_groups<STAGES - 2>();
        __syncthreads();
        fetch(tile + STAGES - 1);
        const float *As = shared + tile % STAGES * STAGE + (m_warp + lane_m) * A_PITCH + lane_k;
        const float *Bs = shared + tile % STAGES * STAGE + BM * A_PITCH + lane_k * B_PITCH + n_warp + lane_m;

        float part[TILES_M][TILES_N][4] = {};
#pragma unroll
        for (int k = 0; k < BK; k += 8) {
            // Load and split.
            unsigned b_big[TILES_N][2], b_small[TILES_N][2];
#pragma unroll
            for (int j = 0; j < TILES_N; ++j)
#pragma unroll
                for (int q = 0; q < 2; ++q)
                    split(Bs[(k + q * 4) * B_PITCH + j * 8], b_big[j][q], b_small[j][q]);
#pragma unroll
            for (int i = 0; i < TILES_M; ++i) {
                unsigned a_big[4], a_small[4];
#pragma unroll
                for (int q = 0; q < 4; ++q)
                    split(As[(i * 16 + q % 2 * 8) * A_PITCH + k + q / 2 * 4], a_big[q], a_small[q]);
                // Compute, the small products first.
#pragma unroll
                for (int j = 0; j < TILES_N; ++j) {
                    multiply_add(part[i][j], a_small, b_big[j]);
                    multiply_add(part[i][j], a_big, b_small[j]);
                    multiply_add(part[i][j], a_big, b_big[j]);
                }
            }
        }
#pragma unroll
        for (int i = 0; i < TILES_M; ++i)
#pragma unroll
            for (int j = 0; j < TILES_N; ++j)
                add(sum[i][j], part[i][j]);
    }

    // Write back.
#pragma unroll
    for (int i = 0; i < TILES_M; ++i)
#pragma unroll
        for (int j = 0; j < TILES_N; ++j)
#pragma unroll
            for (int q = 0; q < 4; ++q) {
                const int row = m0 + m_warp + i * 16 + q / 2 * 8 + lane_m;
                const int column = n0 + n_warp + j * 8 + lane_k * 2 + q % 2;
                if (row < M && column < N) {
                    float *c = C + (size_t)row * N + column;
                    const float value = alpha * sum[i][j][q];
                    *c = beta == 0 ? value : value + beta * *c;
                }
            }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    tf32x3_mma(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C)
{
    if (K % 4 == 0 && N % 4 == 0 && ((size_t)A | (size_t)B) % 16 == 0)
        multiply<4>(M, N, K, alpha, A, B, beta, C);
    else
        multiply<1>(M, N, K, alpha, A, B, beta, C);
}
