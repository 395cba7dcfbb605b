// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
problem = "gemm"
dtypes = ["tf32"]

[[variants]]
id = "tf32"
rung = 696
title = "TF32 by warpgroups"
idea = "Of TF32 wgmma takes its second operand along k only, which B in rows is not. So C is computed transposed: B's columns are the rows of the first operand, which registers hold in any order, and A lies along k as the second must. A warp fetches, two warpgroups multiply, two blocks share rows of A unless one would be left over; tiles are as tall as fills the waves."
after = "naive"
change = "Tensor cores instead of CUDA cores, and every element comes once for each tile, by the copy engine: no FFMA is left, and far fewer instructions of warps."
bottleneck = "Shared memory: tensor cores read 64 of 128 bytes a cycle, 48 come in, and the warps load 16 of B for their registers."

[variants.moves]
warp_instructions = "falls"
ffma_thread_instructions = "falls"

[[variants]]
id = "tf32_64"
rung = 696.1
shape_of = "tf32"
title = "TF32, 64 columns"
idea = "For a C of few tiles: one warpgroup that multiplies, so that there are twice as many blocks."
after = "tf32"
change = "Half of the tile: block_threads fall."
bottleneck = "Latency: launch, the first tiles, and the way back for C."
parameters = { BN = 64, TALLEST = 192 }

[variants.moves]
block_threads = "falls"

[[variants]]
id = "tf32_64_beside"
rung = 696.15
shape_of = "tf32"
title = "TF32, 64 columns, four blocks share rows"
idea = "As tf32_64, and four blocks side by side share rows of A: each fetches a quarter of a tile that may be as tall as there is room for sums."
after = "tf32_64"
change = "Three quarters of each tile of A come from the other blocks."
bottleneck = "The SMs that are left over, as each cluster of four lies within one group of SMs; latency."
parameters = { BN = 64, SHARES = 4 }

[variants.moves]
block_threads = "stays"

[[variants]]
id = "tf32_split"
rung = 696.2
shape_of = "tf32"
title = "TF32, k split over the blocks of a cluster"
idea = "wgmma_split for TF32, with tiles of 64x64, or of twice as many rows where they are too many to share out their k."
after = "tf32_64"
change = "Two to eight blocks share out the k of a tile: grid_blocks rise."
bottleneck = "Latency: launch, the first tiles, and the meeting of the blocks."
parameters = { BN = 64, SHARES = 1, SPLIT = 1 }

[variants.moves]
grid_blocks = "rises"

[[variants]]
id = "tf32_split_128"
rung = 696.25
shape_of = "tf32"
title = "TF32, k split, tiles of 128x128"
idea = "As tf32_split, of tiles that take fewer bytes from the L2 cache for the same products."
after = "tf32_split"
change = "Two warpgroups that multiply: block_threads rise. 832x384x4416 takes 19.8 us on an H200, not 28.1."
bottleneck = "The L2 cache; the sums that blocks send each other."
parameters = { SHARES = 1, SPLIT = 1 }

[variants.moves]
block_threads = "rises"

[tensor_maps.A_map]
array = "A"
box = ["BK", "A_ROWS // SHARING"]
swizzle_bytes = 128

[tensor_maps.B_map]
array = "B"
box = ["BK", "BK"]
swizzle_bytes = 128

[[launches]]
entry = "tf32"
arguments = ["M", "N", "K", "alpha", "A_map", "B_map", "beta", "C"]
block = ["128 + 2 * BN"]
grid = ["CLUSTER * (cdiv(M, BM) * cdiv(N, BN) if SPLIT else cdiv(TILES, WAVES))"]
dynamic_shared_bytes = "128 * STAGES * (BM + BN)"

[constants]
BK = 32 # k per tile
WAVES_1 = "cdiv(cdiv(N, BN) * cdiv(M, TALLEST), sm_count)" # as few as there can be of single blocks, and of two side by side
WAVES_2 = "cdiv(cdiv(N, 2 * BN) * cdiv(M, TALLEST), sm_count // 2)"
COST_1 = "WAVES_1 * cdiv(M, 16 * (WAVES_1 * sm_count // cdiv(N, BN)))" # rows of C in them, in sixteens
COST_2 = "WAVES_2 * cdiv(M, 16 * (WAVES_2 * (sm_count // 2) // cdiv(N, 2 * BN)))"
SHARING = "SHARES if SHARES else 1 if N % 32 == 0 and 16 * COST_1 <= 15 * COST_2 or WAVES_1 == 1 and cdiv(N, BN) % 2 else 2"
COLUMNS = "cdiv(N, BN * SHARING)" # of clusters
CLUSTERS = "(sm_count if SHARING <= 2 else sm_count * 10 // 11) // SHARING" # that run at once
DOWN = "cdiv(COLUMNS * cdiv(M, TALLEST), CLUSTERS) * CLUSTERS // COLUMNS" # tiles in a column, in no more waves
BM = "(64 if 2 * cdiv(M, 64) * cdiv(N, 64) <= sm_count and BN == 64 else 128) if SPLIT else max(64, 16 * cdiv(M, 16 * DOWN))" # rows of C per block
A_ROWS = "min(BM, cdiv(M, 8 * SHARING) * 8 * SHARING)" # of a tile of A that are fetched
CLUSTER = "max(3 if 7 * COLUMNS * cdiv(M, BM) <= 2 * sm_count else 2, min(8, 3 * sm_count // (4 * COLUMNS * cdiv(M, BM)))) if SPLIT else SHARING"
STAGES = "min(8, 1808 // (BM + BN))" # tiles in shared memory, of 226 KiB
TILES = "COLUMNS * cdiv(M, BM)" # of C, as many as a cluster has
WAVES = "cdiv(TILES, (sm_count if CLUSTER <= 2 else sm_count * 10 // 11) // CLUSTER)" # of them
GPCS = "8 if CLUSTER <= 2 and not SPLIT else 1" # as in wgmma_store
FETCHED = "4 * (BM // SHARING + BN) * cdiv(TILES, WAVES) * CLUSTER // sm_count"
WAITS = "WAVES * cdiv(cdiv(K, BK), CLUSTER if SPLIT else 1)"
CYCLES = "WAITS * max(BM * BN // 32, 2 * BN + BM + BN // 64 * BM, FETCHED)"
WRITES = "(WAVES + SPLIT) * BM * BN // 32"

[parameters]
BN = 128      # columns of C per block
TALLEST = 256 # most rows of C per block: fewer where that fills the last wave
SHARES = 0    # blocks of a cluster that share rows of A; 0 for two, but one where a column of single tiles would be left in the only wave, or waves have fewer rows
SPLIT = 0     # whether those of a cluster share out the k of a tile instead
PANEL = 8     # rows of tiles of C whose tiles run together

[candidates]
BN = [64, 128]
TALLEST = [64, 128, 192, 256]
SHARES = [0, 1, 2, 4]
PANEL = [4, 8, 16]

[[require]]
condition = "BN == 64 or BN == 128"
because = "{id} has room for the sums of one warpgroup of 64 columns or of two"

[[require]]
condition = "TALLEST >= 64 and TALLEST <= 256 and TALLEST % 16 == 0 and (SHARES == 1 or not SPLIT)"
because = "{id} has products of 64, 80, 96, … 256 rows, and shares out either rows of A or k"

[[require]]
condition = "N % 4 == 0 and K % 4 == 0"
because = "{id} copies 16 bytes at a time: N and K must be multiples of 4"

[[require]]
condition = "90 <= arch < 100"
because = "{id} multiplies by wgmma, which compute capability 9.0 alone has"
*/

#define THREADS (128 + 2 * BN)
#ifdef PACKED
#include "pack_rows.cuh"
#define TO_PACK , const float *A, const float *B, float *A_packed, float *B_packed
#else
#define TO_PACK
#endif
#ifndef GPCS
#define GPCS 1
#endif
#ifndef RESIDENT
#define RESIDENT 1 // blocks that an SM has registers for
#endif
#define ROW_BYTES 128 // of a tile: BK floats
#define A_BYTES (BM * ROW_BYTES)
#define B_BYTES (BN * ROW_BYTES)
#define STAGE (A_BYTES + B_BYTES)
#define EIGHT_ROWS (8 * 64 * 4) // bytes of a warpgroup's of C

#ifndef A_ROWS
#define A_ROWS BM // that are fetched
#endif

#include "tma.cuh"
#include "wgmma.cuh"

#ifdef GATHERED
#include "gather_tiles.cuh"
#define RELEASING 32 // lanes of a warp that give a stage back: where threads fill it again, each for what it has loaded
#define OPERANDS const float *A, const float *B
#else
#define FETCHING 1 // thread that fetches, and arrives
#define RELEASING 1
#define OPERANDS const __grid_constant__ TensorMap A_map, const __grid_constant__ TensorMap B_map
#endif

// 64 columns by BM rows of C are the products of 8 k, or these are added to them.
#define PRODUCTS(...) PRODUCTS_1(__VA_ARGS__)
#define PRODUCTS_1(ROWS) PRODUCTS_2(ROWS, OF_##ROWS)
#define PRODUCTS_2(...) PRODUCTS_3(__VA_ARGS__)
#define PRODUCTS_3(ROWS, COUNT, B0, B1, B2, B3, A, ADD)                                                                \
    asm volatile("{\n"                                                                                                 \
                 ".reg .pred add;\n"                                                                                   \
                 "setp.ne.s32 add, " ADD ", 0;\n"                                                                      \
                 "wgmma.mma_async.sync.aligned.m64n" #ROWS "k8.f32.tf32.tf32 {" PLACES_##COUNT "}, {" B0 ", " B1 ", "    \
                 B2 ", " B3 "}, " A ", add, 1, 1;\n"                                                                   \
                 "}"                                                                                                   \
                 : SUMS_##COUNT(0)                                                                                     \
                 : "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])), "r"(__float_as_uint(b[2])),                 \
                   "r"(__float_as_uint(b[3])), "l"(a), "r"((int)add))
static __device__ __forceinline__ void multiply_columns(float (&sum)[BM / 2], const float *b, unsigned long long a, bool add)
{
    PRODUCTS(BM);
}

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, RESIDENT)
    tf32(int M, int N, int K, float alpha, OPERANDS, float beta, float *C TO_PACK)
{
#ifdef PACKED
    pack_rows(M, N, K, A, B, A_packed, B_packed);
#endif
    // Coordinates. Tiles of C, CLUSTER of them side by side, go along a panel of rows, then to the next panel.
    const int t = threadIdx.x;
    const int warp = of_warp(t / 32);
    const int lane = t % 32;
    const int tiles_m = (M + BM - 1) / BM;
    const int tiles_n = (N + BN * SHARING - 1) / (BN * SHARING);
    const int tiles = tiles_m * tiles_n;
    const int rank = blockIdx.x % CLUSTER;
    const int own = place_by_gpc<GPCS, CLUSTER>(); // tile of the block
    const int depth = (K + BK - 1) / BK; // tiles of k, of which this block takes some
    const int first = SPLIT ? (int)((long long)depth * rank / CLUSTER) : 0;
    const int last = SPLIT ? (int)((long long)depth * (rank + 1) / CLUSTER) : depth;
    const auto find = [&](int tile, int &m0, int &n0) {
        const int panel = tile / (PANEL * tiles_n);
        const int in_panel = tile % (PANEL * tiles_n);
        const int height = min(PANEL, tiles_m - panel * PANEL); // the last panel may be lower
        m0 = (panel * PANEL + in_panel % height) * BM;
        n0 = (in_panel / height * SHARING + rank % SHARING) * BN;
    };

    // Shared memory: STAGES tiles of A and of B; for each a barrier that counts the bytes which have arrived, and one
    // that counts the warps of all blocks which are done with it.
    extern __shared__ __align__(1024) char shared[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES];
    const unsigned stages = (unsigned)__cvta_generic_to_shared(shared);
    const unsigned full = (unsigned)__cvta_generic_to_shared(barriers);
    const unsigned empty = full + 8 * STAGES;
    if (t == 0) {
#ifndef GATHERED
        prefetch(&A_map);
        prefetch(&B_map);
#endif
        for (int stage = 0; stage < STAGES; ++stage) {
            init_barrier(full + 8 * stage, FETCHING);
            init_barrier(empty + 8 * stage, BN / 64 * 4 * SHARING * RELEASING);
        }
        publish_barriers();
    }
    meet_cluster();

    // Tiles of k are counted through all tiles of C: `turn` says which stage has one, and for which time.
    unsigned turn = 0;
    if (warp < 4) {
        // The warpgroup that fetches: one warp of it, or all where they gather.
        if (BN > 64)
            shrink_to<40>();
#ifdef GATHERED
        int m0, n0;
        find(blockIdx.x / CLUSTER, m0, n0);
        gather_tiles(stages, full, empty, A, B, first * BK, last - first, m0, n0, M, N, K);
#else
        bool back = false; // as in wgmma_store
        for (int tile = own; warp == 0 && tile < tiles; tile += gridDim.x / CLUSTER, back = !back) {
            int m0, n0;
            find(tile, m0, n0);
            for (int k_tile = first; k_tile < last; ++k_tile, ++turn) {
                const int k0 = (back ? first + last - 1 - k_tile : k_tile) * BK;
                const unsigned stage = stages + turn % STAGES * STAGE;
                const unsigned barrier = full + 8 * (turn % STAGES);
                wait(empty + 8 * (turn % STAGES), turn / STAGES % 2 ^ 1); // at once in the first round
                if (!elected())
                    continue;
                expect_bytes(barrier, A_ROWS * ROW_BYTES + B_BYTES);
                const int m = rank % SHARING * (A_ROWS / SHARING);
                copy_box_to_all<SHARING>(stage + m * ROW_BYTES, &A_map, k0, m0 + m, barrier);
                for (int n = 0; n < BN; n += BK)
                    copy_box(stage + A_BYTES + n * ROW_BYTES, &B_map, n0 + n, k0, barrier);
            }
        }
#endif
        if (SPLIT) {
            __syncwarp();
            meet_cluster_in_order();
        }
    } else {
        // The warpgroups that multiply: of 64 columns of C each. A lane's two columns lie side by side, and are such that
        // loads of B meet no bank twice, as the copy engine permutes 16-byte pieces of a row of B by the row's number.
        if (BN > 64) // a single one has registers enough
            grow_to<232>();
        const int box = (warp / 2 - 2) * 32; // the columns of the warp's box of B
        const int piece = lane / 8 % 2 * 4 + warp % 2 * 2 + lane / 16; // of 8 in the box's rows, of which the lane has half
        const int k_lane = lane % 4;
        const int clusters = gridDim.x / CLUSTER;
        const unsigned fills = (tiles - own + clusters - 1) / clusters * depth;
        const auto release = [&](unsigned turn) {
            if (RELEASING > 1)
                arrive_at(empty + 8 * (turn % STAGES));
            else {
                __syncwarp(); // all lanes have loaded B
                if (SHARING == 1 || turn + STAGES < fills) // else it will not fill again, and the other block may have ended
                    arrive_at_all<SHARING>(empty + 8 * (turn % STAGES));
            }
        };
        constexpr int HELD = RELEASING > 1 ? 2 : 3; // tiles of B: one is loaded while two are multiplied, unless threads fetch it
        float b[HELD][BK / 2]; // for each 8 k those of the lane's two columns at k and at k + 4
        const auto load = [&](unsigned turn, float (&held)[BK / 2]) {
            wait(full + 8 * (turn % STAGES), turn / STAGES % 2);
            const unsigned b_tile = stages + turn % STAGES * STAGE + A_BYTES + box * ROW_BYTES + lane / 4 % 2 * 8;
#pragma unroll
            for (int i = 0; i < BK / 2; i += 2) {
                const int k = i * 2 + k_lane;
                const float2 both = load2(b_tile + k * ROW_BYTES + (piece ^ k % 8) * 16);
                held[i] = both.x;
                held[i + 1] = both.y;
            }
        };
#pragma unroll 1
        for (int tile = own; tile < tiles; tile += gridDim.x / CLUSTER) {
            float sum[BM / 2];
            const auto multiply = [&](int k_tile, float (&held)[BK / 2], float (&next)[BK / 2]) {
                if (RELEASING > 1) // which threads fill only when the tile before the last is released
                    load(turn, held);
                const unsigned a_tile = stages + turn % STAGES * STAGE;
                begin_products();
#pragma unroll
                for (int k = 0; k < BK; k += 8)
                    multiply_columns(sum, held + k / 2, rows_of_k(a_tile + k * 4), k_tile + k > first);
                close_products();
                if (RELEASING == 1 && k_tile + 1 < last)
                    load(turn + 1, next);
                // Those of the tile before are done: its stage may fill again.
                wait_for_products<1>();
                if (k_tile > first)
                    release(turn - 1);
                ++turn;
            };
            if (RELEASING == 1 && first < last)
                load(turn, b[0]);
            int k_tile = first;
#pragma unroll 1
            for (; k_tile + HELD <= last; k_tile += HELD)
#pragma unroll
                for (int i = 0; i < HELD; ++i)
                    multiply(k_tile + i, b[i], b[(i + 1) % HELD]);
#pragma unroll
            for (int i = 0; i < HELD - 1; ++i)
                if (k_tile + i < last)
                    multiply(k_tile + i, b[i], b[i + 1]);
            int m0, n0;
            find(tile, m0, n0); // while tensor cores multiply
            wait_for_products<0>();

            // Write back sums `begin` to before `end`: of each eight rows a lane has two, and of these two columns.
            const auto write = [&](int begin, int end) {
#if defined(PACKED) || defined(GATHERED)
                // Rows start anywhere: eight pass through shared memory, so that the lanes of a warp write neighbours.
                const int group = warp / 4 - 1;
                const int row = begin / 4 * 8 + warp % 4 * 2;
                const int column = n0 + group * 64 + lane;
                float *c = C + (size_t)(m0 + row) * N + column;
                const int left[2] = {column < N ? M - m0 - row : 0, column + 32 < N ? M - m0 - row : 0};
#pragma unroll
                for (int i = begin; i < end; i += 4) {
                    const unsigned rows = SPLIT ? stages + i / 4 * EIGHT_ROWS
                                                : stages + STAGES * STAGE + (group * 2 + i / 4 % 2) * EIGHT_ROWS;
#pragma unroll
                    for (int j = 0; j < 2; ++j)
                        store2(rows + (k_lane * 2 + j) * 256 + (box % 64 + (piece ^ k_lane) * 4 + lane / 4 % 2 * 2) * 4,
                               make_float2(alpha * sum[i + j], alpha * sum[i + 2 + j]));
                    meet_warpgroup();
                    float values[4];
#pragma unroll
                    for (int j = 0; j < 4; ++j)
                        values[j] = load1(rows + (warp % 4 * 2 + j / 2) * 256 + (j % 2 * 32 + (lane ^ warp % 4 * 4)) * 4);
                    const auto exists = [&](int j) { return (i - begin) * 2 + j / 2 < left[j % 2]; };
                    const auto place = [&](int j) { return c + (j / 2 * N + j % 2 * 32); };
                    if (beta != 0)
#pragma unroll
                        for (int j = 0; j < 4; ++j)
                            if (exists(j))
                                values[j] += beta * *place(j);
#pragma unroll
                    for (int j = 0; j < 4; ++j)
                        if (exists(j))
                            *place(j) = values[j];
                    c += (size_t)8 * N;
                }
#else
                const int row = m0 + k_lane * 2;
                const int column = n0 + box + piece * 4 + lane / 4 % 2 * 2;
                const int left = column < N ? M - row : 0;
                const auto each = [&](auto act) { // of the pairs of neighbours that exist
                    size_t at = (size_t)row * N + column;
#pragma unroll
                    for (int i = 0; i < BM / 2; i += 4) {
#pragma unroll
                        for (int j = 0; j < 2; ++j)
                            if (begin <= i && i < end && i * 2 + j < left)
                                act(i + j, (float2 *)(C + at + j * N));
                        at += (size_t)8 * N;
                        asm volatile("" : "+l"(at)); // compilers else multiply anew for each
                    }
                };
                if (alpha != 1)
#pragma unroll
                    for (int i = 0; i < BM / 2; ++i)
                        sum[i] *= alpha;
                if (beta != 0)
                    each([&](int i, const float2 *old) {
                        sum[i] += beta * old->x;
                        sum[i + 2] += beta * old->y;
                    });
                each([&](int i, float2 *c) { *c = make_float2(sum[i], sum[i + 2]); });
#endif
            };
#if SPLIT
            // Each block adds up and writes a part of the sums. Those for the others take the place of the tiles, four of a
            // thread side by side.
            constexpr auto begin_of = [](int part) { return BM / 8 * part / CLUSTER * 4; };
            if (first == last) // fewer tiles of k than blocks
#pragma unroll
                for (int i = 0; i < BM / 2; ++i)
                    sum[i] = 0;
            const unsigned mine = stages + (t - 128) * 16; // + 32 * BN for the next four sums
            meet_threads<2 * BN>();
#pragma unroll
            for (int i = 0; i < BM / 2; i += 4)
                if (i < begin_of(rank) || i >= begin_of(rank + 1))
                    store4(mine + i / 4 * 32 * BN, make_float4(sum[i], sum[i + 1], sum[i + 2], sum[i + 3]));
            meet_cluster_in_order();
#pragma unroll
            for (int part = 0; part < CLUSTER; ++part)
                if (part == rank) {
#pragma unroll
                    for (int other = 1; other < CLUSTER; ++other)
#pragma unroll
                        for (int i = begin_of(part); i < begin_of(part + 1); i += 4) {
                            const float4 theirs = load_of_block(mine + i / 4 * 32 * BN, (rank + other) % CLUSTER);
                            sum[i] += theirs.x;
                            sum[i + 1] += theirs.y;
                            sum[i + 2] += theirs.z;
                            sum[i + 3] += theirs.w;
                        }
                    write(begin_of(part), begin_of(part + 1));
                }
#else
            release(turn - 1);
            write(0, BM / 2);
#endif
        }
    }
    if (SPLIT)
        meet_cluster(); // no block may end while others read its sums, and who has added them has them
}
