// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Any rows by the copy engine, realigned"
problem = "gemm"
arguments = ["M", "N", "K", "alpha", "A_map", "A_map_1", "A_map_2", "A_map_3", "B_map", "B_map_1", "B_map_2", "B_map_3", "beta", "C"]

[[variants]]
id = "realigned"
aliases = ["realigned_8x8"]
rung = 578
idea = "The copy engine takes rows that start at multiples of 16 bytes, and of any matrix every fourth row does so as far as its first does: rows four apart start alike. Four tensor maps for A and four for B, each of every fourth row and begun up to three elements early, bring them as they are, and threads put each element in its place while they compute."
after = "reg_8x16_pipelined"
change = "No thread asks global memory for an element: async_copy_requests fall. Each element moves once more within shared memory instead: shared_load_requests rise."
bottleneck = "Issue slots: loads and stores of single elements beside the multiply-adds. In small matrices the adding up of a tile's pieces."

[variants.moves]
async_copy_requests = "falls"
shared_load_requests = "rises"

[[variants]]
id = "realigned_fit"
rung = 579
title = "Any rows, realigned to tiles of 64x128, 128x64 or 256x32"
shape_of = "realigned"
idea = "For a low or narrow C: blocks of four warps, up to three on an SM, and tiles of the shape of which fewest cover C."
after = "realigned"
change = "Tiles of half the size, of which less lies beyond C. Of these an element that is fetched serves fewer products."
bottleneck = "As before issue slots, of which a thread that realigns a smaller tile needs a few more."
parameters = { WARPS = 4 }
launch = { block = [128] }

[variants.moves]
block_threads = "falls"

[tensor_maps.A_map]
array = "A"
extents = ["K", "cdiv(M, 4)"]
strides = ["4 * K"]
box = ["BK + 4", "BM // 4"]

[tensor_maps.A_map_1]
array = "A"
start = "K // 4 * 4"
extents = ["K + K % 4", "cdiv(M - 1, 4)"]
strides = ["4 * K"]
box = ["BK + 4", "BM // 4"]

[tensor_maps.A_map_2]
array = "A"
start = "2 * K // 4 * 4"
extents = ["K + 2 * K % 4", "cdiv(M - 2, 4)"]
strides = ["4 * K"]
box = ["BK + 4", "BM // 4"]

[tensor_maps.A_map_3]
array = "A"
start = "3 * K // 4 * 4"
extents = ["K + 3 * K % 4", "cdiv(M - 3, 4)"]
strides = ["4 * K"]
box = ["BK + 4", "BM // 4"]

[tensor_maps.B_map]
array = "B"
extents = ["N", "cdiv(K, 4)"]
strides = ["4 * N"]
box = ["B_ROW", "BK // 4"]

[tensor_maps.B_map_1]
array = "B"
start = "N // 4 * 4"
extents = ["N + N % 4", "cdiv(K - 1, 4)"]
strides = ["4 * N"]
box = ["B_ROW", "BK // 4"]

[tensor_maps.B_map_2]
array = "B"
start = "2 * N // 4 * 4"
extents = ["N + 2 * N % 4", "cdiv(K - 2, 4)"]
strides = ["4 * N"]
box = ["B_ROW", "BK // 4"]

[tensor_maps.B_map_3]
array = "B"
start = "3 * N // 4 * 4"
extents = ["N + 3 * N % 4", "cdiv(K - 3, 4)"]
strides = ["4 * N"]
box = ["B_ROW", "BK // 4"]

[launch]
block = [256]
grid = ["BLOCKS"]
dynamic_shared_bytes = "(2 * (BM * (BK + 4) + B_PART_BYTES) + 3 * BK * (BM + BN) + block_x * 12) * real_bytes"
cooperative = true

[constants]
BK = 16 # k per tile
BM = "ROWS if ROWS else min(cdiv(M, 16 * WARPS) * cdiv(N, 128) * 4096 + 16 * WARPS, cdiv(M, 32 * WARPS) * cdiv(N, 64) * (4096 if WARPS == 4 else 5120) + 32 * WARPS, cdiv(M, 256) * cdiv(N, 8 * WARPS) * 5120 + 256) % 1024" # rows of C per block, fewest tiles; of 256 rows fewer blocks fit on an SM, so they must save a fifth
BN = "2048 * WARPS // BM" # columns of C per block
B_ROW = "BN + 4" # elements of a row of B as it lands: it starts up to three behind a multiple of four
B_PART_BYTES = "cdiv(BK * B_ROW, 128) * 128" # of every fourth row of B's tile
SHARE_TILES = "cdiv(M, BM) * cdiv(N, BN)" # of C,
EVEN = "cdiv(SHARE_TILES * cdiv(K, BK), sm_count)" # tiles of k, of which each SM does an equal part
RESIDENT = "SM_BLOCKS if SM_BLOCKS else (2 if EVEN <= 32 or BM == 256 else 3) if WARPS == 4 else 1 if BM == 256 else 2" # blocks to an SM
BUSIEST = "cdiv(SHARE_TILES, sm_count) * cdiv(K, BK)" # tiles of k of the SM that has most, where each block has a tile of its own
WHOLE = "1 if WARPS == 8 and SHARE_TILES <= RESIDENT * sm_count and BUSIEST <= EVEN + 2 * RESIDENT else 0" # whether each block has: adding a part of one to C takes it as long as two tiles of k
BLOCKS = "SHARE_TILES if WHOLE else min(sm_count * RESIDENT, SHARE_TILES * cdiv(K, BK))"
CYCLES = "(BUSIEST if WHOLE else EVEN) * BK * BM * BN // 128" # of products,
WRITES = "(SHARE_TILES if WHOLE else SHARE_TILES + BLOCKS) * BM * BN // (32 * sm_count)" # what its warps write of C: each tile, and the part of one that each block ends with

[parameters]
WARPS = 8     # of a block
ROWS = 0      # of C per block; 0: 128 or 256, or 64 of four warps
SM_BLOCKS = 0 # blocks to an SM; 0: two, one of 256 rows and eight warps, or three of four warps where each has much to do

[candidates]
ROWS = [0, 64, 128, 256]
SM_BLOCKS = [0, 1, 2, 3]

[[require]]
condition = "block_x == 32 * WARPS and (WARPS == 4 or WARPS == 8) and (BM == 64 or BM == 128 or BM == 256) and BN <= 128"
because = "{id} needs a block of 4 or 8 WARPS, and tiles of 64, 128 or 256 rows (ROWS) and at most as many columns, 2048 elements a warp"

[[require]]
condition = "N % 4 != 0 or K % 4 != 0"
because = "{id} is for rows that the copy engine cannot take as they are, of A or of B: here it can, as in streamk"

[[require]]
condition = "M >= 4 and K >= 4"
because = "{id} has a tensor map for each of the first four rows of A and of B: M and K must be 4 or more"

[[require]]
condition = "SM_BLOCKS >= 0 and RESIDENT <= (3 if WARPS == 4 else 2) - (BM == 256)"
because = "{id} has shared memory for two blocks on an SM, or three of four warps; of 256 rows for one less"

[[require]]
condition = "arch >= 90"
because = "{id} uses bulk copies, which need compute capability 9.0"

[[require]]
condition = "arch < 120"
because = "{id} fills 200 KiB of shared memory per SM, more than compute capability 12 has"
*/

#define THREADS BLOCK_X
#define TM 8         // rows of C per thread
#define TN 8         // columns of C per thread
#define LANES_M 8    // a warp's lanes: 8 along M by 4 along N
#define LANES_N 4
#define WARPS_N (BN / (LANES_N * TN))
#define TURNS 4      // in which each thread realigns its elements, one turn for every two k
#define A_MOVES (BM * BK / THREADS / TURNS) // elements of A that are its part of a turn
#define B_MOVES (BN * BK / THREADS / TURNS)
#define A_DEEP (BK / WARPS)                 // k of a row of A that a warp moves
#define B_ACROSS (BN / 32)                  // elements of a row of B that a thread moves
#define A_ROW (BK + 4)                     // elements of a row of A as it lands
#define A_PART_BYTES (BM / 4 * A_ROW * 4)  // of every fourth row of A's tile
#define B_LANDED (4 * A_PART_BYTES)        // where B lands, behind A
#define LANDED_BYTES (B_LANDED + 4 * B_PART_BYTES)
#define A_BYTES (BM * BK * 4)              // of A's tile in place, whose rows are k
#define TILE_BYTES (A_BYTES + BN * BK * 4) // of both
#define TILES (2 * LANDED_BYTES)           // where they begin

#include "scale_first.cuh"
#include "tma.cuh"
#include "write_any_n.cuh"

// One for every fourth row, from each of the first four on.
#define MAPS(X)                                                                                                        \
    const __grid_constant__ TensorMap X##_map, const __grid_constant__ TensorMap X##_map_1,                            \
        const __grid_constant__ TensorMap X##_map_2, const __grid_constant__ TensorMap X##_map_3

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    realigned(int M, int N, int K, float alpha, MAPS(A), MAPS(B), float beta, float *C)
{
    // Coordinates. A lane's rows and columns come in groups of four neighbours; the groups of a warp interleave.
    const int t = threadIdx.x;
    const int lane = t % 32;
    const int warp = t / 32;
    const int lane_n = lane / 2 % LANES_N;
    const int lane_m = lane % 2 + lane / 8 * 2;
    const int m_thread = warp / WARPS_N * LANES_M * TM + lane_m * 4; // + 4 * LANES_M per group of rows
    const int n_thread = warp % WARPS_N * LANES_N * TN + lane_n * 4; // + 4 * LANES_N per group of columns

    // This block's share: of all k-tiles of all tiles of C, one after the other, as many as every other block's. It
    // is walked piece by piece, a piece being what lies in one tile of C, and the last piece comes first.
    const int tiles_n = (N + BN - 1) / BN;
    const int depth = (K + BK - 1) / BK;
    const long long total = (long long)((M + BM - 1) / BM) * tiles_n * depth;
    const int first = (int)(total * blockIdx.x / gridDim.x);
    const int last = (int)(total * (blockIdx.x + 1) / gridDim.x);
    const int tiles = last - first;
    const auto piece_before = [&](int end) { return max(first, (end - 1) / depth * depth); };

    // Shared memory: two tiles as they land, with a barrier each that counts the bytes which have arrived; three in place,
    // of which one is computed from, one is filled and one was computed from last; and room to write C from. A last
    // barrier counts the threads that have done their part of a tile.
    extern __shared__ __align__(1024) char shared[];
    __shared__ __align__(8) unsigned long long barriers[3];
    const unsigned landed = (unsigned)__cvta_generic_to_shared(shared);
    const unsigned placed = landed + TILES;
    const unsigned arrived = (unsigned)__cvta_generic_to_shared(barriers);
    const unsigned realigned = arrived + 16;
    const TensorMap *const maps[] = {&A_map, &A_map_1, &A_map_2, &A_map_3, &B_map, &B_map_1, &B_map_2, &B_map_3};
#pragma unroll
    for (int map = 0; map < 8; ++map)
        if (t == 32 + map) // each is on its way while the others are
            prefetch(maps[map]);
    if (t == 0) {
        for (int stage = 0; stage < 2; ++stage)
            init_barrier(arrived + 8 * stage, 1);
        init_barrier(realigned, THREADS);
        publish_barriers();
    }
    __syncthreads();
    // Fetch the share's k-tiles, by number in the order in which they are walked: one thread tells the barrier what to
    // expect and starts the copies. The warps take turns at it, so that none falls behind.
    const int newest = piece_before(last); // where the piece begins that comes first
    const auto fetch = [&](int tile) {
        if (t == tile % WARPS * 32) {
            const int behind = tile - (last - newest); // the first piece
            const int k_tile = behind < 0 ? newest + tile : max(first, newest - (behind / depth + 1) * depth) + behind % depth;
            const int next_k = k_tile % depth * BK;
            const int next_m = k_tile / depth / tiles_n * BM;
            const int next_n = k_tile / depth % tiles_n * BN;
            const unsigned barrier = arrived + 8 * (tile % 2);
            const unsigned to = landed + tile % 2 * LANDED_BYTES;
            expect_bytes(barrier, B_LANDED + BK * B_ROW * 4);
#pragma unroll
            for (int part = 0; part < 4; ++part) {
                copy_box(to + part * A_PART_BYTES, maps[part], next_k, next_m / 4, barrier);
                copy_box(to + B_LANDED + part * B_PART_BYTES, maps[4 + part], next_n, next_k / 4, barrier);
            }
        }
    };

    // Realign: row r of a matrix starts r * its length behind a multiple of four elements, and its element lies so far
    // behind its place. A warp moves a few k of all rows of A, which turns them on the way, and whole rows of B.
    const int a_from = lane % 4 * A_PART_BYTES + (lane / 4 * A_ROW + lane % 4 * K % 4 + warp * A_DEEP) * 4;
    const int a_to = (warp * A_DEEP * BM + lane) * 4;
    const int b_from = B_LANDED + warp % 4 * B_PART_BYTES + (warp / 4 * B_ROW + warp % 4 * N % 4 + lane) * 4;
    const int b_to = A_BYTES + (warp * BN + lane) * 4;
    float a_moved[A_MOVES];
    float b_moved[B_MOVES];
    const auto load_moved = [&](unsigned from, int turn) {
#pragma unroll
        for (int i = turn * A_MOVES; i < (turn + 1) * A_MOVES; ++i)
            a_moved[i % A_MOVES] = load1(from + a_from + (i / A_DEEP * 8 * A_ROW + i % A_DEEP) * 4);
#pragma unroll
        for (int i = turn * B_MOVES; i < (turn + 1) * B_MOVES; ++i)
            b_moved[i % B_MOVES] = load1(from + b_from + (i / B_ACROSS * (WARPS / 4) * B_ROW + i % B_ACROSS * 32) * 4);
    };
    const auto store_moved = [&](unsigned to, int turn) {
#pragma unroll
        for (int i = turn * A_MOVES; i < (turn + 1) * A_MOVES; ++i)
            store(to + a_to + (i % A_DEEP * BM + i / A_DEEP * 32) * 4, a_moved[i % A_MOVES]);
#pragma unroll
        for (int i = turn * B_MOVES; i < (turn + 1) * B_MOVES; ++i)
            store(to + b_to + (i / B_ACROSS * WARPS * BN + i % B_ACROSS * 32) * 4, b_moved[i % B_MOVES]);
    };
    const auto arrive = [&]() { arrive_at(realigned); };

    // Operands of one k, and of the next.
    float a[2][TM];
    float b[2][TN];
    const auto load = [&](int set, unsigned a_row, unsigned b_row) {
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            *(float4 *)&b[set][j] = load4(b_row + j * LANES_N * 4);
#pragma unroll
        for (int i = 0; i < TM; i += 4)
            *(float4 *)&a[set][i] = load4(a_row + i * LANES_M * 4);
    };

    // Realign the first tile, then load the operands of its first k.
    const int a_first = m_thread * 4;
    const int b_first = A_BYTES + n_thread * 4;
    for (int tile = 0; tile < min(tiles, 2); ++tile)
        fetch(tile);
    const bool anew = WHOLE && beta == 0; // whether C need not be added to
    if (!anew)
        scale_slice(M, N, beta, C);
    wait(arrived, 0);
#pragma unroll
    for (int i = 0; i < TURNS; ++i) {
        load_moved(landed, i);
        store_moved(placed, i);
    }
    arrive();
    wait(realigned, 0);
    if (2 < tiles)
        fetch(2);
    __syncwarp();
    unsigned a_row = placed + a_first;
    unsigned b_row = placed + b_first;
    load(0, a_row, b_row);

    int tile = 0;
#pragma unroll 1
    for (int end = last, begin = piece_before(end); end > first; end = begin, begin = piece_before(end)) {
        float sum[TM][TN] = {};
        // The products of one k, like a snake: two neighbours share an operand, which the register file then need not
        // deliver twice.
        const auto multiply = [&](int set) {
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) {
                    const int j_snake = i % 2 ? TN - 1 - j : j;
                    sum[i][j_snake] += a[set][i] * b[set][j_snake];
                }
        };

#pragma unroll 1
        for (int k_tile = begin; k_tile < end; ++k_tile, ++tile) {
            const bool more = tile + 1 < tiles;
            const unsigned next = placed + (tile + 1) % 3 * TILE_BYTES;
            const unsigned after = more ? next : placed + tile % 3 * TILE_BYTES; // of the last tile any will do
            const unsigned from = landed + (more ? tile + 1 : tile) % 2 * LANDED_BYTES;
            if (more)
                wait(arrived + 8 * ((tile + 1) % 2), (tile + 1) / 2 % 2);

            // Compute, and realign the next tile meanwhile.
#pragma unroll
            for (int k = 0; k < BK; ++k) {
                if (k == BK - 1) {
                    // Sync before the last k, whose operands are in registers: once all warps have done their part of
                    // the next tile, what it landed in may fill again, and they are done with the tile before this one.
                    if (more)
                        wait(realigned, (tile + 1) % 2);
                    if (tile + 3 < tiles)
                        fetch(tile + 3);
                    __syncwarp();
                    load((k + 1) % 2, after + a_first, after + b_first);
                } else
                    load((k + 1) % 2, a_row + (k + 1) * BM * 4, b_row + (k + 1) * BN * 4);
                if (k % 2 == 0 && k / 2 < TURNS)
                    load_moved(from, k / 2);
                multiply(k % 2);
                if (k % 2 == 1 && k / 2 < TURNS)
                    store_moved(next, k / 2);
                if (k == 2 * TURNS - 1)
                    arrive();
            }
            a_row = after + a_first;
            b_row = after + b_first;
        }

        // Add this piece to its tile of C, or write all of one.
        if (!anew && end == last)
            wait_until_scaled();
        each_element(sum, begin / depth / tiles_n * BM + m_thread, begin / depth % tiles_n * BN + n_thread, M, N, alpha, C,
                     shared + TILES + 3 * TILE_BYTES, [&](float *target, float value, bool exists) {
                         if (!anew)
                             add(target, value, exists);
                         else if (exists)
                             *target = value;
                     });
    }
}
