// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Tiles in flight by cp.async"
problem = "gemm"
rung = 666
dtypes = ["bf16", "f16"]
idea = "Copies go from memory to shared memory without passing through registers, and nobody waits for them: three tiles are on their way while one is computed from."
after = "mma_swizzled"
change = "The wait for memory lies behind the products of three tiles, and one barrier a tile is enough: barriers fall by half, and no thread stores to shared memory."
bottleneck = "Tensor cores by mma.sync: on an H100 the instruction reaches about two thirds of their peak. On an A100 it is all there is."
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]

[moves]
barriers = "falls"
shared_store_requests = "falls"
global_load_requests = "falls"

[launch]
block = [256]
grid = ["cdiv(N, BN)", "cdiv(M, BM)"]
dynamic_shared_bytes = "STAGES * BK * (BM + BN) * real_bytes"

[constants]
BM = 128 # rows of C per block
BN = 128 # columns of C per block
BK = 32  # k per tile
WIDE = "K % 8 == 0 and N % 8 == 0" # rows start at multiples of 16 bytes

[parameters]
STAGES = 4 # tiles in shared memory

[candidates]
STAGES = [3, 4, 5]

[[require]]
condition = "STAGES >= 3"
because = "{id} needs three STAGES or more: one is computed from, one was before, the others fill"

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

#define STAGE (BK * (BM + BN))

#include "cp_async.cuh"
#include "tensor_core.cuh"

// Where a piece of 8 neighbours lies in shared memory. Two rows of A's tile fill all banks once, half a row of B's does.
static __device__ __forceinline__ int place_a(int row, int k)
{
    return row * BK + (k ^ row / 2 % 4 * 8);
}
static __device__ __forceinline__ int place_b(int k, int column)
{
    return k * BN + (column ^ k % 8 * 8);
}

// Bring a piece of 8 neighbours, of which `left` exist, to shared memory: by a copy that nobody waits for, or where rows
// start anywhere by loads.
static __device__ __forceinline__ void bring(real *target, const real *source, int left)
{
    if (WIDE)
        copy<16>(target, source, left > 0);
    else
        *(uint4 *)target = load8<false>(source, left);
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
    mma_async(int M, int N, int K, float alpha, const real *A, const real *B, float beta, real *C)
{
    extern __shared__ __align__(128) real shared[]; // (stage, A's tile and B's)

    // Coordinates.
    const int t = threadIdx.x;
    const int lane = t % 32;
    const int warp = t / 32;
    const int m_warp = warp / WARPS_N * WM;
    const int n_warp = warp % WARPS_N * WN;
    const int m0 = blockIdx.y * BM;
    const int n0 = blockIdx.x * BN;
    const int tiles = (K + BK - 1) / BK;

    // Fetch a tile of A and one of B, zeros beyond the matrix. Every call closes a group of copies, if only an empty one.
    const auto fetch = [&](int tile) {
        if (tile < tiles) {
            real *As = shared + tile % STAGES * STAGE;
            real *Bs = As + BM * BK;
            const int k0 = tile * BK;
#pragma unroll
            for (int i = 0; i < A_TURNS; ++i) {
                const int row = (i * THREADS + t) / (BK / 8);
                const int k = (i * THREADS + t) % (BK / 8) * 8;
                bring(As + place_a(row, k), A + (size_t)(m0 + row) * K + k0 + k, m0 + row < M ? K - k0 - k : 0);
            }
#pragma unroll
            for (int i = 0; i < B_TURNS; ++i) {
                const int k = (i * THREADS + t) / (BN / 8);
                const int column = (i * THREADS + t) % (BN / 8) * 8;
                bring(Bs + place_b(k, column), B + (size_t)(k0 + k) * N + n0 + column,
                      k0 + k < K ? N - n0 - column : 0);
            }
        }
        close_group();
    };
    for (int i = 0; i < STAGES - 1; ++i)
        fetch(i);

    float sum[WM / 16][WN / 8][4] = {};
#pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
        // Sync: this tile is complete, and nobody reads any more from the one before, whose stage fills next.
        wait_for_groups<STAGES - 2>();
        __syncthreads();
        fetch(tile + STAGES - 1);

        // Compute.
        const unsigned a_tile = (unsigned)__cvta_generic_to_shared(shared + tile % STAGES * STAGE);
        const unsigned b_tile = a_tile + 2 * BM * BK;
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
