// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Products of a warpgroup"
problem = "gemm"
rung = 668
dtypes = ["bf16", "f16"]
idea = "Four warps multiply 64x128 by one instruction, wgmma, that reads both operands from shared memory itself and is waited for later. Rows of 128 bytes, swizzled as the instruction knows them; B stays as it is, with columns as neighbours."
after = "mma_async"
change = "The same tile of C, twice as deep. No lane holds an operand any more: all loads from shared memory are gone, and one instruction does the work of 64 before."
bottleneck = "Copies by threads: each computes addresses and bounds for 8 copies a tile, and tensor cores stand still from one tile's last product to the next one's first."
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]

[moves]
shared_load_requests = "falls"
pipe_tensor_instructions = "falls"

[launch]
block = [256]
grid = ["cdiv(N, BN)", "cdiv(M, BM)"]
dynamic_shared_bytes = "STAGES * BK * (BM + BN) * real_bytes"

[constants]
BM = 128 # rows of C per block
BN = 128 # columns of C per block
BK = 64  # k per tile

[parameters]
STAGES = 3 # tiles in shared memory

[candidates]
STAGES = [3, 4, 5]

[[require]]
condition = "STAGES >= 3"
because = "{id} needs three STAGES or more: one is computed from, one was before, the others fill"

[[require]]
condition = "N % 8 == 0 and K % 8 == 0"
because = "{id} copies 16 bytes at a time: N and K must be multiples of 8"

[[require]]
condition = "90 <= arch < 100"
because = "{id} multiplies by wgmma, which compute capability 9.0 alone has"
*/

#define THREADS BLOCK_X
#define A_TURNS (BM * BK / 8 / THREADS) // pieces of 8 neighbours of a row that a thread copies
#define B_TURNS (BK * BN / 8 / THREADS)
#define STAGE (BK * (BM + BN))

#include "cp_async.cuh"
#include "wgmma.cuh"

// Where a piece of 8 neighbours lies in shared memory: as rows of ROW elements, permuted.
static __device__ __forceinline__ int place_a(int row, int k)
{
    return row * ROW + (k ^ row % 8 * 8);
}
static __device__ __forceinline__ int place_b(int k, int column)
{
    return column / ROW * (BK * ROW) + k * ROW + (column % ROW ^ k % 8 * 8);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    wgmma(int M, int N, int K, float alpha, const real *A, const real *B, float beta, real *C)
{
    extern __shared__ __align__(1024) real shared[]; // (stage, A's tile and B's)

    // Coordinates.
    const int t = threadIdx.x;
    const int m_group = t / 128 * 64; // the warpgroup's first row of C in the block's tile
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
                copy<16>(As + place_a(row, k), A + (size_t)(m0 + row) * K + k0 + k, m0 + row < M && k0 + k < K);
            }
#pragma unroll
            for (int i = 0; i < B_TURNS; ++i) {
                const int k = (i * THREADS + t) / (BN / 8);
                const int column = (i * THREADS + t) % (BN / 8) * 8;
                copy<16>(Bs + place_b(k, column), B + (size_t)(k0 + k) * N + n0 + column,
                         k0 + k < K && n0 + column < N);
            }
        }
        close_group();
    };
    for (int i = 0; i < STAGES - 1; ++i)
        fetch(i);

    float sum[BN / 2];
#pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
        // Sync: this tile is complete, and no product reads any more from the one before, whose stage fills next.
        wait_for_groups<STAGES - 2>();
        publish_shared();
        __syncthreads();

        // Compute, and fetch meanwhile.
        const unsigned a_tile = (unsigned)__cvta_generic_to_shared(shared + tile % STAGES * STAGE);
        const unsigned b_tile = a_tile + 2 * BM * BK;
        begin_products();
#pragma unroll
        for (int k = 0; k < BK; k += 16)
            multiply_add(sum, rows_of_k(a_tile + 2 * (m_group * ROW + k)),
                         rows_of_columns(b_tile + 2 * k * ROW, 2 * BK * ROW), tile + k > 0);
        close_products();
        fetch(tile + STAGES - 1);
        wait_for_products<0>();
    }

    write_sums(sum, m0 + m_group, n0, M, N, alpha, beta, C);
}
