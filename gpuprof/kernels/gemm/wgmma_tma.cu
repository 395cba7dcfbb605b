// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Tiles fetched by the copy engine"
problem = "gemm"
rung = 670
dtypes = ["bf16", "f16"]
idea = "One thread asks the copy engine for a tile of A and of B. It computes addresses and bounds, swizzles, and tells a barrier in shared memory when all bytes have arrived."
after = "wgmma"
change = "255 of 256 threads copy nothing: async_copy_requests and the instructions for them are gone, and no fence is needed, since only the copy engine writes what tensor cores read."
bottleneck = "Tensor cores stand still from one tile's last product to the next one's first: all warps wait for the products, then for each other."
arguments = ["M", "N", "K", "alpha", "A_map", "B_map", "beta", "C"]

[moves]
async_copy_requests = "falls"
warp_instructions = "falls"

[tensor_maps.A_map]
array = "A"
box = ["BK", "BM"]
swizzle_bytes = 128

[tensor_maps.B_map]
array = "B"
box = ["64", "BK"]
swizzle_bytes = 128

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
#define A_BYTES (2 * BM * BK)
#define B_BYTES (2 * BK * BN)
#define STAGE (A_BYTES + B_BYTES)

#include "tma.cuh"
#include "wgmma.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    wgmma_tma(int M, int N, int K, float alpha, const __grid_constant__ TensorMap A_map,
              const __grid_constant__ TensorMap B_map, float beta, real *C)
{
    // Coordinates.
    const int t = threadIdx.x;
    const int m_group = t / 128 * 64; // the warpgroup's first row of C in the block's tile
    const int m0 = blockIdx.y * BM;
    const int n0 = blockIdx.x * BN;
    const int tiles = (K + BK - 1) / BK;

    // Shared memory: STAGES tiles of A and of B; for each a barrier that counts the bytes which have arrived.
    extern __shared__ __align__(1024) char shared[];
    __shared__ __align__(8) unsigned long long barriers[STAGES];
    const unsigned stages = (unsigned)__cvta_generic_to_shared(shared);
    const unsigned arrived = (unsigned)__cvta_generic_to_shared(barriers);
    if (t == 0) {
        for (int stage = 0; stage < STAGES; ++stage)
            init_barrier(arrived + 8 * stage, 1);
        publish_barriers();
    }
    __syncthreads();

    // Fetch a tile of A and one of B.
    const auto fetch = [&](int tile) {
        if (t == 0 && tile < tiles) {
            const unsigned stage = stages + tile % STAGES * STAGE;
            const unsigned barrier = arrived + 8 * (tile % STAGES);
            expect_bytes(barrier, STAGE);
            copy_box(stage, &A_map, tile * BK, m0, barrier);
            for (int n = 0; n < BN; n += ROW)
                copy_box(stage + A_BYTES + 2 * n * BK, &B_map, n0 + n, tile * BK, barrier);
        }
    };
    for (int i = 0; i < STAGES - 1; ++i)
        fetch(i);

    float sum[BN / 2];
#pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
        // Sync: this tile is complete, and no product reads any more from the one before, whose stage fills next.
        wait(arrived + 8 * (tile % STAGES), tile / STAGES % 2);
        __syncthreads();

        // Compute, and fetch meanwhile.
        const unsigned a_tile = stages + tile % STAGES * STAGE;
        const unsigned b_tile = a_tile + A_BYTES;
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
