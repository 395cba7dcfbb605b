// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
problem = "gemm"
dtypes = ["bf16", "f16"]

[[variants]]
id = "wgmma_split"
rung = 675.7
shape_of = "wgmma_producer"
title = "k split over the blocks of a cluster"
idea = "For a C of few tiles: the blocks of a cluster share out the k of a tile, and each adds up a part of the sums, which it reads from the others' shared memory."
after = "wgmma_producer"
change = "So many blocks a tile that three quarters of the SMs have one, two to eight: grid_blocks rise. Clusters of more would leave SMs idle, since each lies within one group of them."
bottleneck = "Latency: launch, the first tiles, and the meeting of the blocks."

[variants.moves]
grid_blocks = "rises"

[[variants]]
id = "wgmma_split_pairs"
rung = 675.75
shape_of = "wgmma_producer"
title = "k split over pairs of blocks"
idea = "As wgmma_split, of two tiles of 64x128 one below the other: the two blocks that have the same k share columns of B, so that each product takes half as many bytes from the L2 cache as with tiles of 64x64."
after = "wgmma_split"
change = "Wider tiles, fewer of them, and half of each tile of B from the other block: at 512x512x4096 it takes 5 to 9 % less time."
bottleneck = "Latency: launch, the first tiles, and the meeting of the blocks."
parameters = { NARROWEST = 128, SHARING = 2 }

[variants.moves]
block_threads = "stays"

[tensor_maps.A_map]
array = "A"
box = ["BK", "A_ROWS"]
swizzle_bytes = 128
l2_promotion_bytes = "256 if K % 128 == 0 else 128" # as in wgmma_store

[tensor_maps.B_map]
array = "B"
box = ["64", "BK // SHARING"]
swizzle_bytes = 128
l2_promotion_bytes = "256 if N % 128 == 0 else 128"

[tensor_maps.C_map]
array = "C"
box = ["64", "16"]
swizzle_bytes = 128

[[launches]]
entry = "wgmma_split"
arguments = ["M", "N", "K", "alpha", "A_map", "B_map", "beta", "C", "C_map"]
block = ["128 + 2 * BM"]
grid = ["CLUSTER * cdiv(N, BN)", "cdiv(M, BM * SHARING)"]
dynamic_shared_bytes = "128 * (STAGES * (BM + BN) + 2 * BM)"

[constants]
A_ROWS = "min(BM, cdiv(M, 8) * 8)" # of a tile of A that are fetched: zeros in the place of others would take as long as rows
BK = 64 # k per tile
BN = "NARROWEST if 2 * cdiv(M, BM) * cdiv(N, NARROWEST) <= sm_count else WIDEST" # columns of C per block
CLUSTER = "SHARING * (WAYS if WAYS else max(2, min(8 // SHARING, 3 * sm_count // (4 * cdiv(M, BM) * cdiv(N, BN)))))"
STAGES = "min(8, (1808 - 2 * BM) // (BM + BN))" # tiles in shared memory, of 226 KiB
TILES = "cdiv(M, BM * SHARING) * cdiv(N, BN)" # of C, as many as a cluster has
WAVES = "cdiv(TILES, (sm_count if CLUSTER <= 2 else sm_count * 10 // 11) // CLUSTER)" # of them
LINES = "BM * (100 + 33 * min(1, K % 64) + 16 * min(1, K % 32) + 45 * min(1, K % 16)) + BN * (100 + 33 * min(1, N % 64) + 16 * min(1, N % 32) + 45 * min(1, N % 16)) // SHARING" # as in wgmma_store
FETCHED = "LINES * cdiv(TILES, WAVES) * CLUSTER * 7430 // l2_bytes"
READ = "7 * BM // 4"
MULTIPLIED = "BM * BN * 41 // 1600"
MOST = "max(FETCHED, READ, MULTIPLIED)"
WAITS = "WAVES * cdiv(cdiv(K, BK), CLUSTER // SHARING)"
CYCLES = "WAITS * (55 + MOST + 27 * (FETCHED ** 2 + READ ** 2 + MULTIPLIED ** 2 - MOST ** 2) // (100 * MOST))"
WRITES = "(4 * WAVES + 7) * BM * BN // 128" # and summed up
SPLIT = 1

[parameters]
BM = 64        # rows of C per block
NARROWEST = 64 # columns of C per block
WIDEST = 128   # where those are too many
SHARING = 1    # blocks, one below the other, which share columns of B
WAYS = 0       # that share the k of a tile; 0 for as many as there are SMs for

[candidates]
BM = [64, 128]
NARROWEST = [64, 128]
WIDEST = [64, 128, 192, 256]
SHARING = [1, 2]
WAYS = [0, 2, 3, 4, 6, 8]

[[require]]
condition = "BM == 64 or BM == 128"
because = "{id} has room for the sums of one warpgroup of 64 rows or of two"

[[require]]
condition = "BN == 64 or BN == 128 or BN == 192 or BN == 256"
because = "{id} has products of 64, 128, 192 and 256 columns"

[[require]]
condition = "(SHARING == 1 or SHARING == 2 or SHARING == 4) and (WAYS == 0 or 2 <= WAYS) and CLUSTER <= 8"
because = "{id} shares a tile's k among two blocks or more, in clusters of at most 8"

[[require]]
condition = "N % 8 == 0 and K % 8 == 0"
because = "{id} copies 16 bytes at a time: N and K must be multiples of 8"

[[require]]
condition = "90 <= arch < 100"
because = "{id} multiplies by wgmma, which compute capability 9.0 alone has"
*/

#define THREADS (128 + 2 * BM)
#ifndef SHARING
#define SHARING 1
#endif
#ifndef RESIDENT
#define RESIDENT 1 // blocks that an SM has registers for
#endif
#define PARTS (CLUSTER / SHARING) // of k

#include "store_sums.cuh"

#ifdef GATHERED
#include "gather_tiles.cuh"
#define OPERANDS const real *A, const real *B
#define C_TARGET
#define STORE_SUMS(...) store_sums_anywhere(total, pieces, __VA_ARGS__)
#else
#define FETCHING 1 // thread that fetches, and arrives
#define OPERANDS const __grid_constant__ TensorMap A_map, const __grid_constant__ TensorMap B_map
#define C_TARGET , const __grid_constant__ TensorMap C_map
#define STORE_SUMS(...) store_sums<2>(total, pieces, &C_map, &C_map, __VA_ARGS__)
#endif

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, RESIDENT)
    wgmma_split(int M, int N, int K, float alpha, OPERANDS, float beta, real *C C_TARGET)
{
    // Coordinates.
    const int t = threadIdx.x;
    const int warp = of_warp(t / 32);
    const int below = blockIdx.x % SHARING; // of how many blocks of the cluster that have the same k this one lies
    const int m0 = (blockIdx.y * SHARING + below) * BM;
    const int n0 = blockIdx.x / CLUSTER * BN;
    const int rank = blockIdx.x % CLUSTER / SHARING; // of those that share the tile's k
    const int depth = (K + BK - 1) / BK; // tiles of k, of which this block takes `tiles` from the first-th on
    const int first = (int)((long long)depth * rank / PARTS);
    const unsigned tiles = (int)((long long)depth * (rank + 1) / PARTS) - first;

    // Shared memory: STAGES tiles of A and of B; for each a barrier that counts the bytes which have arrived, and one
    // that counts the warps which are done with it. At the end sums for the other blocks take the place of the tiles,
    // float4 by float4; behind the tiles are two pieces of C for each warp.
    extern __shared__ __align__(1024) char shared[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES];
    const unsigned stages = (unsigned)__cvta_generic_to_shared(shared);
    const unsigned full = (unsigned)__cvta_generic_to_shared(barriers);
    const unsigned empty = full + 8 * STAGES;
    if (t == 0) {
#ifndef GATHERED
        prefetch(&A_map);
        prefetch(&B_map);
        prefetch(&C_map);
#endif
        for (int stage = 0; stage < STAGES; ++stage) {
            init_barrier(full + 8 * stage, FETCHING);
            init_barrier(empty + 8 * stage, BM / 64 * 4 * SHARING);
        }
        publish_barriers();
    }
    if (SHARING > 1)
        meet_cluster();
    else
        __syncthreads();

    if (warp < 4) {
        // The warpgroup that fetches: one warp of it, or all where they gather.
        if (BM > 64)
            shrink_to<40>();
#ifdef GATHERED
        gather_tiles(stages, full, empty, A, B, first * BK, tiles, m0, n0, M, N, K);
#else
        for (unsigned tile = 0; warp == 0 && tile < tiles; ++tile) {
            wait(empty + 8 * (tile % STAGES), tile / STAGES % 2 ^ 1); // at once in the first round
            if (elected())
                fetch_tiles<SHARING>(stages + tile % STAGES * STAGE, &A_map, &B_map, &B_map, (first + tile) * BK, m0, n0,
                                     blockIdx.x % CLUSTER, full + 8 * (tile % STAGES));
        }
#endif
        __syncwarp();
        meet_cluster_in_order();
        meet_cluster();
        return;
    }

    // The warpgroups that multiply.
    if (BM > 64) // a single one has registers enough
        grow_to<232>();
    const int m_group = (warp / 4 - 1) * 64; // first row of C in the block's tile
    const auto release = [&](unsigned tile) {
        if (SHARING == 1)
            arrive_at_all<1>(empty + 8 * (tile % STAGES));
        else if (t % 32 < SHARING)
            arrive_at_block(empty + 8 * (tile % STAGES), rank * SHARING + t % 32);
    };
    float sum[BN / 2];
#pragma unroll 1
    for (unsigned tile = 0; tile < tiles; ++tile) {
        wait(full + 8 * (tile % STAGES), tile / STAGES % 2);
        multiply_tiles(sum, stages + tile % STAGES * STAGE, m_group, tile > 0);
        // Those of the tile before are done: its stage may fill again.
        wait_for_products<1>();
        if (tile > 0)
            release(tile - 1);
    }
    wait_for_products<0>();
    if (tiles == 0) // fewer tiles of k than blocks
#pragma unroll
        for (int i = 0; i < BN / 2; ++i)
            sum[i] = 0;

    // Each block adds up some pieces, of 16 rows by ROW columns, of the tile, a warp those of its rows. A warp's sums lie
    // in the same place of all blocks, four of a thread side by side.
    const unsigned mine = stages + (t - 128) * 16; // + 32 * BM for the next eight columns
    const unsigned pieces = stages + STAGES * STAGE + (warp - 4) * 2 * PIECE;
    meet_threads<2 * BM>(); // all of the block's warps have multiplied
    const auto owner = [&](int piece) { return ((warp - 4) * (BN / ROW) + piece) % PARTS; };
#pragma unroll
    for (int i = 0; i < BN / 8; ++i)
        if (owner(i / 8) != rank)
            store4(mine + i * 32 * BM, make_float4(sum[4 * i], sum[4 * i + 1], sum[4 * i + 2], sum[4 * i + 3]));
    meet_cluster_in_order();
#pragma unroll
    for (int piece = 0; piece < BN / ROW; ++piece)
        if (owner(piece) == rank) {
            float total[ROW / 2];
#pragma unroll
            for (int i = 0; i < ROW / 2; ++i)
                total[i] = sum[piece * (ROW / 2) + i];
#pragma unroll
            for (int other = 1; other < PARTS; ++other)
#pragma unroll
                for (int i = 0; i < ROW / 8; ++i) {
                    const int block = (rank + other) % PARTS * SHARING + below;
                    const float4 theirs = load_of_block(mine + (piece * 8 + i) * 32 * BM, block);
                    total[4 * i] += theirs.x;
                    total[4 * i + 1] += theirs.y;
                    total[4 * i + 2] += theirs.z;
                    total[4 * i + 3] += theirs.w;
                }
            STORE_SUMS(m0 + m_group, n0 + piece * ROW, M, N, alpha, beta, C);
        }
    wait_for_stores<0>();
    meet_cluster(); // no block may end while others read its sums
}
