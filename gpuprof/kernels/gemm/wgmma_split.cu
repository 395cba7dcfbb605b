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
idea = "For a C of few tiles: the blocks of a cluster share out the k of a tile, and each adds up a part of the sums, which the others send to its shared memory."
after = "wgmma_producer"
change = "So many blocks a tile that three quarters of the SMs have one, two to eight: grid_blocks rise. Clusters of more would leave SMs idle, since each lies within one group of them; but three fit well."
bottleneck = "Latency: launch, the first tiles, and the meeting of the blocks."

[variants.moves]
grid_blocks = "rises"

[[variants]]
id = "wgmma_split_below"
rung = 675.76
shape_of = "wgmma_producer"
title = "k split, four blocks share columns"
idea = "As wgmma_split, of four tiles one below the other, as wide as fills the SMs once with two blocks for each: those that have the same k share columns of B, so that each product takes fewer bytes from the L2 cache."
after = "wgmma_split"
change = "Three quarters of each tile of B come from other blocks: 168x2800x4720 takes 16.1 us on an H200, not 18.4 by wgmma_store_turned_2x2."
bottleneck = "Latency; the SMs that are left over, as each cluster of eight lies within one group of SMs."
parameters = { WIDEST = 256, GRAIN = 16, BELOW = 4, WAYS = 2 }

[variants.moves]
block_threads = "stays"

[[variants]]
id = "wgmma_split_128_2x2"
rung = 675.78
shape_of = "wgmma_producer"
title = "k split, squares of 128 rows"
idea = "Two warpgroups multiply a tile of 128 rows as wide as fills the SMs once. Each of two parts of k has two by two tiles: they share rows of A and columns of B, and take fewer bytes from the L2 cache than as many blocks with the whole k."
after = "wgmma_split"
change = "Larger tiles: block_threads rise. 248x3720x5576 takes 20.5 us on an H200, not 25.2."
bottleneck = "The sums that blocks send each other; the SMs that are left over."
parameters = { BM = 128, WIDEST = 256, GRAIN = 16, BELOW = 2, BESIDE = 2, WAYS = 2 }

[variants.moves]
block_threads = "rises"

[[variants]]
id = "wgmma_split_128_4"
rung = 675.79
shape_of = "wgmma_producer"
title = "k split among four, 128 rows"
idea = "As wgmma_split_128_2x2, of two tiles side by side with four blocks for the k of each: where C is small, tiles may still be wide."
after = "wgmma_split_128_2x2"
change = "Wider tiles with shorter parts of k: 1800x400x5200 takes 19.8 us on an H200, not 22.4."
bottleneck = "The sums that blocks send each other; the SMs that are left over."
parameters = { BM = 128, WIDEST = 256, GRAIN = 16, BESIDE = 2, WAYS = 4 }

[variants.moves]
block_threads = "stays"

[[variants]]
id = "wgmma_split_turned"
rung = 675.795
shape_of = "wgmma_producer"
title = "k split, turned"
idea = "As wgmma_split, of columns of B by rows of A: where C is low all of its rows are one tile, and each line of B, the larger matrix, is read once."
after = "wgmma_split"
change = "Tiles of 64 columns and up to 256 rows: 136x3392x3872 takes 12.4 us on an H200, not 16.7 by wgmma_split_below."
bottleneck = "Latency: launch, the first tiles, and the meeting of the blocks."
parameters = { WIDEST = 256, TURNED = 1 }

[variants.moves]
block_threads = "stays"

[tensor_maps.A_map]
array = "A"
box = ["BK", "BN // BELOW if TURNED else A_ROWS // BESIDE"]
swizzle_bytes = 128
l2_promotion_bytes = "256 if K % 128 == 0 else 128" # as in wgmma_store

[tensor_maps.B_map]
array = "B"
box = ["64", "BK // BESIDE if TURNED else BK // BELOW"]
swizzle_bytes = 128
l2_promotion_bytes = "256 if N % 128 == 0 else 128"

[tensor_maps.B_rest_map]
array = "B"
box = ["BN % 64 if BN % 64 else 64", "BK // BELOW"]
swizzle_bytes = 128
l2_promotion_bytes = "256 if N % 128 == 0 else 128"

[tensor_maps.C_map]
array = "C"
box = ["64", "64 if TURNED else 16"]
swizzle_bytes = 128

[tensor_maps.C_rest_map]
array = "C"
box = ["64 if TURNED or BN % 64 == 0 else BN % 64", "16 if not TURNED else BN % 64 if BN % 64 else 64"]
swizzle_bytes = 128

[[launches]]
entry = "wgmma_split"
arguments = ["M", "N", "K", "alpha", "A_map", "B_map", "B_rest_map", "beta", "C", "C_map", "C_rest_map"]
block = ["128 + 2 * BM"]
grid = ["CLUSTER * cdiv(WIDTH, BN * BESIDE)", "ROWS"]
dynamic_shared_bytes = "128 * (STAGES * (BM + cdiv(BN, 64) * 64) + BM + OWN)"

[constants]
HEIGHT = "N if TURNED else M" # of C, in tiles of BM
WIDTH = "M if TURNED else N"
A_ROWS = "BM if TURNED else min(BM, cdiv(M, 8 * BESIDE) * 8 * BESIDE)" # of a tile of A that are fetched: zeros in the place of others would take as long as rows
BK = 64 # k per tile
SAME_K = "BELOW * BESIDE" # blocks of a cluster that multiply the same k
ROWS = "cdiv(HEIGHT, BM * BELOW)" # of clusters
FITTED = "(sm_count if SAME_K * WAYS <= 2 else sm_count * 10 // 11) // (SAME_K * max(1, WAYS))" # clusters that run at once,
FEWEST = "cdiv(ROWS * cdiv(WIDTH, WIDEST * BESIDE), FITTED)" # waves of them,
FIT = "max(64, max(1, GRAIN) * cdiv(WIDTH, max(1, GRAIN) * BESIDE * (FEWEST * FITTED // ROWS)))" # and columns that fill these
BN = "max(32, 16 * cdiv(M, 16 * cdiv(M, WIDEST))) if TURNED else FIT if GRAIN else NARROWEST if 2 * cdiv(M, BM) * cdiv(N, NARROWEST) <= sm_count else WIDEST" # columns of C per block, or rows
CLUSTER = "SAME_K * (WAYS if WAYS else max(3 if 7 * SAME_K * cdiv(HEIGHT, BM) * cdiv(WIDTH, BN) <= 2 * sm_count else 2, min(8 // SAME_K, 3 * sm_count // (4 * cdiv(HEIGHT, BM) * cdiv(WIDTH, BN)))))"
SENT = "cdiv(BM // (64 if TURNED else 16) * cdiv(BN, 64), CLUSTER // SAME_K) * (4 if TURNED else 1) * (CLUSTER // SAME_K - 1) * 32" # times 128 bytes of sums that other blocks send
OWN = "SENT if 5 * (BM + cdiv(BN, 64) * 64) + BM + SENT <= 1808 else 0" # which take the place of tiles only if five of those would not fit besides
STAGES = "min(8, (1808 - BM - OWN) // (BM + cdiv(BN, 64) * 64))" # tiles in shared memory, of 226 KiB
TILES = "ROWS * cdiv(WIDTH, BN * BESIDE)" # of C, as many as a cluster has
WAVES = "cdiv(TILES, (sm_count if CLUSTER <= 2 else sm_count * 10 // 11) // CLUSTER)" # of them
IN_A = "38 * min(1, K % 64) + 32 * min(1, K % 32) + 27 * min(1, K % 16)"
IN_B = "38 * min(1, N % 64 + (0 if TURNED else BN % 64)) + 32 * min(1, N % 32 + (0 if TURNED else BN % 32)) + 27 * min(1, N % 16)"
LINES = "BM * (100 + (IN_B if TURNED else IN_A)) // BESIDE + BN * (100 + (IN_A if TURNED else IN_B)) // BELOW" # as in wgmma_store
RUNNING = "cdiv(TILES, WAVES) * CLUSTER"
FETCHED = "LINES * RUNNING * 9290 // l2_bytes"
SHARED = "2 * BM + 27 * (BM + cdiv(BN, 64) * 64) // 200"
MULTIPLIED = "BM * BN * 27 // 1000"
MOST = "max(FETCHED, SHARED, MULTIPLIED)"
WAITS = "WAVES * cdiv(cdiv(K, BK), CLUSTER // SAME_K)"
STREAMED = "34000 * (M + N) * K // (l2_bytes * WAITS)" # as in wgmma_store
CYCLES = "WAITS * (30 + 36 * RUNNING // sm_count + 58 * min(1, K % 16) + max(STREAMED, MOST + 3 * (FETCHED ** 2 + SHARED ** 2 + MULTIPLIED ** 2 - MOST ** 2) // (20 * MOST))) + 760 * WAVES + 9000 * (WAVES - 1)" # each wave begins anew
WRITES = "(4 * WAVES * SAME_K + 9 * (CLUSTER - SAME_K)) * BM * BN // (128 * CLUSTER)" # of a block its part of the tile, and what it sends the others
MEETS = "CLUSTER + 3" # as in wgmma_store

[parameters]
BM = 64        # rows of C per block
NARROWEST = 64 # columns of C per block
WIDEST = 128   # where those are too many
GRAIN = 0      # instead, by so many fewer than WIDEST as fills the SMs, for a known number of WAYS
BELOW = 1      # blocks, one below the other, which share columns of B
BESIDE = 1     # and side by side, which share rows of A
TURNED = 0     # 1 for tiles of BM columns by up to WIDEST rows
WAYS = 0       # that share the k of a tile; 0 for as many as there are SMs for

[candidates]
BM = [64, 128]
NARROWEST = [64, 128]
WIDEST = [64, 128, 192, 256]
GRAIN = [0, 16, 32, 64]
BELOW = [1, 2]
BESIDE = [1, 2]
WAYS = [0, 2, 3, 4, 6, 8]

[[require]]
condition = "BM == 64 or BM == 128"
because = "{id} has room for the sums of one warpgroup of 64 rows or of two"

[[require]]
condition = "NARROWEST >= 64 and NARROWEST % 64 == 0 and WIDEST >= 64 and WIDEST <= 256 and WIDEST % max(16, GRAIN) == 0 and GRAIN % 16 == 0 and (WAYS or not GRAIN)"
because = "{id} has products of 64, 80, 96, … 256 columns"

[[require]]
condition = "(BELOW == 1 or BELOW == 2 or BELOW == 4) and (BESIDE == 1 or BESIDE == 2) and (WAYS == 0 or 2 <= WAYS) and CLUSTER <= 8"
because = "{id} shares a tile's k among two blocks or more, in clusters of at most 8"

[[require]]
condition = "not TURNED or M <= WIDEST and CLUSTER <= 4"
because = "{id} has all rows of C in one tile, and adds up its few pieces in at most 4 blocks"

[[require]]
condition = "N % 8 == 0 and K % 8 == 0"
because = "{id} copies 16 bytes at a time: N and K must be multiples of 8"

[[require]]
condition = "90 <= arch < 100"
because = "{id} multiplies by wgmma, which compute capability 9.0 alone has"
*/

#define WARPS (BM / 16) // that multiply
#ifndef TOGETHER
#define TOGETHER 0 // whether those that multiply fetch before
#endif
#define FIRST_WARP (TOGETHER ? 0 : 4) // that multiplies
#define THREADS (32 * (FIRST_WARP + WARPS))
#ifndef BELOW
#define BELOW 1
#endif
#ifndef BESIDE
#define BESIDE 1
#endif
#ifndef SAME_K
#define SAME_K (BELOW * BESIDE)
#endif
#ifndef OWN
#define OWN 0 // times 128 bytes for sums that other blocks send; 0: in the place of tiles
#endif
#ifndef RESIDENT
#define RESIDENT 1 // blocks that an SM has registers for
#endif
#define PARTS (CLUSTER / SAME_K) // of k
#define LAST ((BN - 1) / ROW)    // of a warp's pieces of C, which may be narrower
#define LAST_COLUMNS (BN - LAST * ROW)

#include "store_sums.cuh"

#ifdef GATHERED
#include "gather_tiles.cuh"
#ifndef OPERAND
#define OPERAND real
#endif
#define OPERANDS const OPERAND *A, const OPERAND *B,
#define C_TARGET
#define STORE_SUMS(...) store_sums_anywhere(total, piece, __VA_ARGS__)
#else
#define FETCHING 1 // thread that fetches, and arrives
#define OPERANDS const __grid_constant__ TensorMap A_map, const __grid_constant__ TensorMap B_map, OF_B_REST
#define C_TARGET , const __grid_constant__ TensorMap C_map, const __grid_constant__ TensorMap C_rest_map
#define STORE_SUMS(...) store_sums<1>(total, piece, &C_map, &C_rest_map, __VA_ARGS__)
#endif

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, RESIDENT)
    wgmma_split(int M, int N, int K, float alpha, OPERANDS float beta, real *C C_TARGET)
{
    // Coordinates.
    const int t = threadIdx.x;
    const int warp = of_warp(t / 32);
    const int place = blockIdx.x % SAME_K; // among the blocks of the cluster that have the same k, column by column
    const int m0 = (blockIdx.y * BELOW + place % BELOW) * BM;
    const int n0 = (blockIdx.x / CLUSTER * BESIDE + place / BELOW) * BN;
    const int rank = blockIdx.x % CLUSTER / SAME_K; // of those that share the tile's k
    const int depth = (K + BK - 1) / BK; // tiles of k, of which this block takes `tiles` from the first-th on
    const int first = (int)((long long)depth * rank / PARTS);
    const unsigned tiles = (int)((long long)depth * (rank + 1) / PARTS) - first;

    // Shared memory: STAGES tiles of A and of B; for each a barrier that counts the bytes which have arrived, and one
    // that counts the warps which are done with it. Behind the tiles is a piece of C for each warp, and room for sums of the
    // other blocks; or these take the place of the tiles, once all warps are done with them (`free`). Each warp has a barrier
    // that counts the bytes it gets.
    extern __shared__ __align__(1024) char shared[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES + 1 + WARPS];
    const unsigned stages = of_warp((unsigned)__cvta_generic_to_shared(shared)); // here, not anew for each tile of k
    const unsigned full = of_warp((unsigned)__cvta_generic_to_shared(barriers));
    const unsigned empty = full + 8 * STAGES;
    const unsigned free = empty + 8 * STAGES;
    if (t == 0) {
#ifndef GATHERED
        prefetch(&A_map);
        prefetch(&B_map);
        prefetch(&C_map);
#endif
        for (int stage = 0; stage < STAGES; ++stage) {
            init_barrier(full + 8 * stage, FETCHING);
            init_barrier(empty + 8 * stage, WARPS * (BELOW + BESIDE - 1));
        }
        init_barrier(free, WARPS * PARTS);
        for (int i = 1; i <= WARPS; ++i)
            init_barrier(free + 8 * i, 1);
        publish_barriers();
    }
    if (CLUSTER > 1)
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
        Turn<STAGES> turn;
#pragma unroll 1
        for (unsigned tile = 0; warp == 0 && tile < tiles; ++tile, turn.advance()) {
            wait(empty + 8 * turn.stage, turn.parity ^ 1); // at once in the first round
            if (elected())
                fetch_tiles<BELOW, BESIDE>(stages + turn.stage * STAGE, &A_map, &B_map, B_REST_MAP, (first + tile) * BK, m0,
                                           n0, blockIdx.x % CLUSTER, full + 8 * turn.stage);
        }
#endif
        if (!TOGETHER)
            return;
    }

    // The warpgroups that multiply.
    if (BM > 64) // a single one has registers enough
        grow_to<232>();
    const int m_group = (warp - FIRST_WARP) / 4 * 64; // first row of C in the block's tile
    const int lane = t % 32;
    const bool fetches_for_us =
        lane < SAME_K && (lane % BELOW == place % BELOW || lane / BELOW == place / BELOW);
    const auto release = [&](unsigned stage) {
        if (SAME_K == 1)
            arrive_at_all<1>(empty + 8 * stage);
        else if (fetches_for_us)
            arrive_at_block(empty + 8 * stage, rank * SAME_K + lane);
    };
    Turn<STAGES> turn;
    unsigned before = 0; // stage of the tile before
    float sum[BN / 2];
#pragma unroll 1
    for (unsigned tile = 0; tile < tiles; ++tile) {
        wait(full + 8 * turn.stage, turn.parity);
        multiply_tiles(sum, stages + turn.stage * STAGE, m_group, tile > 0);
        // Those of the tile before are done: its stage may fill again. If it will not, blocks that fetched for us may have ended.
        wait_for_products<1>();
        if (tile > 0 && tile + STAGES <= tiles)
            release(before);
        before = turn.stage;
        turn.advance();
    }
    wait_for_products<0>();
    if (tiles == 0) // fewer tiles of k than blocks
#pragma unroll
        for (int i = 0; i < BN / 2; ++i)
            sum[i] = 0;

    // Each block adds up some pieces, of 16 rows by ROW columns, of the tile, a warp those of its rows (turned, of ROW rows by
    // 64 columns, a warpgroup those of its columns), and gets them from the same warp of each other block, four sums of a
    // thread at a time.
    const unsigned piece = stages + STAGES * STAGE + (warp - FIRST_WARP) / WRITERS * PIECE;
    const unsigned sums = OWN ? stages + STAGES * STAGE + BM * 128 : stages;
    const unsigned arrived = free + 8 * (warp - FIRST_WARP + 1);
    const auto place_of_piece = [&](int number) { return (warp - FIRST_WARP) / WRITERS * (LAST + 1) + number; };
    const auto owner = [&](int number) { return place_of_piece(number) % PARTS; };
    const auto slot = [&](int number, int other) { // for what the other-th block behind the owner has
        const int first = place_of_piece(number) / PARTS * WRITERS + (warp - FIRST_WARP) % WRITERS;
        return sums + (first * (PARTS - 1) + other - 1) * (64 * ROW) + lane * 16;
    };
    if (PARTS > 1) {
        if (OWN == 0 && lane < PARTS)
            arrive_at_block(free, lane * SAME_K + place);
        int columns = 0;
        for (int number = 0; number <= LAST; ++number)
            if (owner(number) == rank)
                columns += number < LAST ? ROW : LAST_COLUMNS;
        if (elected())
            expect_bytes(arrived, (PARTS - 1) * 64 * columns);
        if (OWN == 0)
            wait(free, 0);
    }
#pragma unroll
    for (int i = 0; i < BN / 8; ++i) {
        const int to = owner(i / 8);
        if (to != rank)
            send4(slot(i / 8, (rank - to + PARTS) % PARTS) + i % 8 * 512, arrived, to * SAME_K + place,
                  make_float4(sum[4 * i], sum[4 * i + 1], sum[4 * i + 2], sum[4 * i + 3]));
    }
    const auto finish = [&](auto &total, int number) {
        if (owner(number) != rank)
            return;
        if (PARTS > 1)
            wait(arrived, 0);
#pragma unroll
        for (int other = 1; other < PARTS; ++other)
#pragma unroll
            for (int i = 0; i < (int)(sizeof(total) / 16); ++i) {
                const float4 theirs = load4(slot(number, other) + i * 512);
                total[4 * i] += theirs.x;
                total[4 * i + 1] += theirs.y;
                total[4 * i + 2] += theirs.z;
                total[4 * i + 3] += theirs.w;
            }
        const int m = m0 + m_group, n = n0 + number * ROW;
        STORE_SUMS(TURNED ? n : m, TURNED ? m : n, M, N, alpha, beta, C);
    };
#pragma unroll
    for (int number = 0; number < LAST; ++number)
        finish((float(&)[ROW / 2])sum[number * (ROW / 2)], number);
    finish((float(&)[LAST_COLUMNS / 2])sum[LAST * (ROW / 2)], LAST);
    wait_for_stores<0>();
}
