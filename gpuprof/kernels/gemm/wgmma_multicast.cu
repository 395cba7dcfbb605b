// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
problem = "gemm"
dtypes = ["bf16", "f16"]
title = "Two blocks share tiles of B"
rung = 678
idea = "Two blocks of a cluster compute tiles one below the other, which need the same columns of B: each fetches half of their k, for both."
after = "wgmma_persistent"
change = "A block asks the L2 cache for 32 KiB a tile of k instead of 48. A stage is free once the warps of both blocks are done with it: each warp tells them."
bottleneck = "Writing C: a warp stores 8 rows of 16 bytes at a time, half of a sector each, and no product runs for its warps meanwhile."
arguments = ["M", "N", "K", "alpha", "A_map", "B_map", "beta", "C"]

[moves]
grid_blocks = "stays"

[tensor_maps.A_map]
array = "A"
box = ["BK", "BM"]
swizzle_bytes = 128

[tensor_maps.B_map]
array = "B"
box = ["64", "BK // CLUSTER"]
swizzle_bytes = 128

[launch]
block = [384]
grid = ["min(sm_count // CLUSTER, cdiv(N, BN) * cdiv(M, BM * CLUSTER)) * CLUSTER"]
dynamic_shared_bytes = "STAGES * BK * (BM + BN) * real_bytes"

[constants]
BM = 128    # rows of C per block
BK = 64     # k per tile
CLUSTER = 2 # blocks that share columns of B

[parameters]
BN = 256   # columns of C per block
STAGES = 4 # tiles in shared memory

[candidates]
BN = [64, 128, 192, 256]
STAGES = [3, 4, 5, 6]

[[require]]
condition = "BN == 64 or BN == 128 or BN == 192 or BN == 256"
because = "{id} has products of 64, 128, 192 and 256 columns"

[[require]]
condition = "STAGES >= 2"
because = "{id} needs two STAGES or more: one is computed from, the others fill"

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

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
    wgmma_multicast(int M, int N, int K, float alpha, const __grid_constant__ TensorMap A_map,
                    const __grid_constant__ TensorMap B_map, float beta, real *C)
{
    // Coordinates.
    const int t = threadIdx.x;
    const int warp = of_warp(t / 32);
    const int lane = t % 32;
    const int tiles_n = (N + BN - 1) / BN;
    const int tiles = (M + BM * CLUSTER - 1) / (BM * CLUSTER) * tiles_n; // of C, CLUSTER of them one below the other
    const int depth = (K + BK - 1) / BK; // tiles of k
    const int rank = blockIdx.x % CLUSTER;
    const auto first_row = [&](int tile) { return (tile / tiles_n * CLUSTER + rank) * BM; };

    // Shared memory: STAGES tiles of A and of B; for each a barrier that counts the bytes which have arrived, and one
    // that counts the warps of all blocks which are done with it.
    extern __shared__ __align__(1024) char shared[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES];
    const unsigned stages = (unsigned)__cvta_generic_to_shared(shared);
    const unsigned full = (unsigned)__cvta_generic_to_shared(barriers);
    const unsigned empty = full + 8 * STAGES;
    if (t == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            init_barrier(full + 8 * stage, 1);
            init_barrier(empty + 8 * stage, BM / 64 * 4 * CLUSTER);
        }
        publish_barriers();
    }
    meet_cluster();

    // Tiles of k are counted through all tiles of C: `turn` says which stage has one, and for which time.
    if (warp < 4) {
        // The warpgroup that fetches: one warp of it.
        shrink_to<40>();
        const int k_mine = rank * (BK / CLUSTER); // of a tile of B this block's share
        unsigned turn = 0;
        for (int tile = blockIdx.x / CLUSTER; warp == 0 && tile < tiles; tile += gridDim.x / CLUSTER) {
            const int m0 = first_row(tile);
            const int n0 = tile % tiles_n * BN;
            for (int k0 = 0; k0 < K; k0 += BK, ++turn) {
                const unsigned stage = stages + turn % STAGES * STAGE;
                const unsigned barrier = full + 8 * (turn % STAGES);
                wait(empty + 8 * (turn % STAGES), turn / STAGES % 2 ^ 1); // at once in the first round
                if (elected()) {
                    expect_bytes(barrier, STAGE);
                    copy_box(stage, &A_map, k0, m0, barrier);
                    for (int n = 0; n < BN; n += ROW)
                        copy_box_to_all<CLUSTER>(stage + A_BYTES + 2 * (n * BK + k_mine * ROW), &B_map, n0 + n, k0 + k_mine,
                                                 barrier);
                }
            }
        }
    } else {
        // The warpgroups that multiply.
        grow_to<232>();
        const int m_group = (warp / 4 - 1) * 64; // first row of C in the block's tile
        const int clusters = gridDim.x / CLUSTER;
        const unsigned fills = (tiles - blockIdx.x / CLUSTER + clusters - 1) / clusters * depth;
        const auto release = [&](unsigned turn) {
            if (turn + STAGES < fills && lane < CLUSTER) // else it will not fill again, and the other block may have ended
                arrive_at_block(empty + 8 * (turn % STAGES), lane);
        };
        unsigned turn = 0;
#pragma unroll 1
        for (int tile = blockIdx.x / CLUSTER; tile < tiles; tile += gridDim.x / CLUSTER) {
            float sum[BN / 2];
#pragma unroll 1
            for (int k_tile = 0; k_tile < depth; ++k_tile, ++turn) {
                wait(full + 8 * (turn % STAGES), turn / STAGES % 2);
                const unsigned a_tile = stages + turn % STAGES * STAGE;
                const unsigned b_tile = a_tile + A_BYTES;
                begin_products();
#pragma unroll
                for (int k = 0; k < BK; k += 16)
                    multiply_add(sum, rows_of_k(a_tile + 2 * (m_group * ROW + k)),
                                 rows_of_columns(b_tile + 2 * k * ROW, 2 * BK * ROW), k_tile + k > 0);
                close_products();
                // Those of the tile before are done: its stage may fill again.
                wait_for_products<1>();
                if (k_tile > 0)
                    release(turn - 1);
            }
            wait_for_products<0>();
            release(turn - 1);
            write_sums(sum, first_row(tile) + m_group, tile % tiles_n * BN, M, N, alpha, beta, C);
        }
    }
}
