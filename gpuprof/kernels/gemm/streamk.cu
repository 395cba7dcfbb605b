// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "An even share for every SM"
problem = "gemm"
arguments = ["M", "N", "K", "alpha", "A_map", "B_map", "beta", "C"]

[[variants]]
id = "streamk"
aliases = ["streamk_12x16"]
rung = 570
idea = "Stream-K: one block for each SM, and the k-tiles of all tiles of C are dealt out evenly. A tile that two blocks share is written by the first and added to by the second. With all addresses gone from its registers a thread has room for 12x16 outputs, in tiles of 96x512."
after = "bulk_8x16"
change = "There is no last wave in which SMs idle: all blocks end together. Seven loads for 192 FMAs instead of six for 128: shared_load_wavefronts fall, registers_per_thread rise to the limit."
bottleneck = "Register bandwidth: values that arrive from shared memory, and operands of one FMA that share a register bank, keep the scheduler from issuing in about one cycle of ten (dispatch stalls); nothing else waits."

[variants.moves]
shared_load_wavefronts = "falls"
registers_per_thread = "rises"

[[variants]]
id = "streamk_fit"
aliases = ["streamk_64x256", "streamk_8x8", "streamk_128x128", "streamk_8x8_square"]
rung = 571
title = "Tiles of 64x256, 128x128 or 256x64, an even share"
shape_of = "streamk"
idea = "For C of a few tiles to an SM, or of fewer tiles than SMs: 8x8 outputs per thread, in tiles of the shape of which fewest cover C, and where two blocks fit on an SM they hide each other's waits."
after = "streamk"
change = "Tiles of a third of the size, of which less lies beyond a small or narrow C. Where they fill one wave each block has one, and nothing is added up. Four loads for 64 FMAs instead of seven for 192: shared_load_wavefronts rise, registers_per_thread fall."
bottleneck = "Shared-memory loads in large matrices, in small ones the adding up of a tile's pieces."
parameters = { ROWS = 0, TM = 8, TN = 8, BLOCKS_PER_SM = 0, SCALE_FIRST = 1 }

[variants.moves]
shared_load_wavefronts = "rises"
registers_per_thread = "falls"

[[variants]]
id = "streamk_small"
rung = 572
title = "Tiles of 64x128, 128x64 or 256x32, an even share"
shape_of = "streamk"
idea = "For a C that larger tiles do not fit: blocks of four warps, three on an SM, or two where C is narrow."
after = "streamk_fit"
change = "Tiles of half the size, of which less lies beyond C. Of these an element that is fetched serves fewer products."
bottleneck = "As before: in small matrices the adding up of a tile's pieces."
parameters = { WARPS = 4, ROWS = 0, TM = 8, TN = 8, STAGES = 0, BLOCKS_PER_SM = 0, SCALE_FIRST = 1 }
launch = { block = [128] }

[variants.moves]
block_threads = "falls"

[tensor_maps.A_map]
array = "A"
box = ["BK", "BM"]
swizzle_bytes = 64

[tensor_maps.B_map]
array = "B"
box = ["min(32 * WARPS * TM * TN // BM, 256)", "BK"]

[launch]
block = [256]
grid = ["BLOCKS"]
dynamic_shared_bytes = "DEEP * BK * (2 * BM + 32 * WARPS * TM * TN // BM) * real_bytes"
cooperative = true

[constants]
BK = 16 # k per tile
BM = "ROWS if ROWS else min(cdiv(M, 64) * cdiv(N, 32 * WARPS) * 4096 + 64, cdiv(M, 128) * cdiv(N, 16 * WARPS) * 4096 + 128, cdiv(M, 256) * cdiv(N, 8 * WARPS) * (5120 if WARPS == 4 else 4096) + 256) % 1024" # rows of C per block, fewest tiles; 256x32 reuses less, so it must save a fifth. Its columns are 32 * WARPS * TM * TN / BM
DEEP = "STAGES if STAGES else 3 if BM == 128 or 64 * WARPS == BM else 4" # tiles in flight
SHARE_TILES = "cdiv(M, BM) * cdiv(N, 32 * WARPS * TM * TN // BM)" # of C,
EVEN = "cdiv(SHARE_TILES * cdiv(K, BK), sm_count)" # tiles of k, of which each SM does an equal part
SM_BLOCKS = "BLOCKS_PER_SM if BLOCKS_PER_SM else (12 if BM < 256 else 8) // WARPS if WARPS == 4 or BM == 256 else 2" # blocks to an SM
BUSIEST = "cdiv(SHARE_TILES, sm_count) * cdiv(K, BK)" # tiles of k of the SM that has most, where each block has a tile of its own
WHOLE = "1 if SCALE_FIRST and WARPS == 8 and SHARE_TILES <= SM_BLOCKS * sm_count and BUSIEST <= EVEN + 2 * SM_BLOCKS else 0" # whether each block has: adding a part of one to C takes it as long as two tiles of k
BLOCKS = "SHARE_TILES if WHOLE else min(sm_count * SM_BLOCKS, SHARE_TILES * cdiv(K, BK))"
CYCLES = "(BUSIEST if WHOLE else EVEN) * BK * WARPS * TM * TN // 4" # of products,
WRITES = "(SHARE_TILES if WHOLE else SHARE_TILES + BLOCKS) * TM * TN * WARPS // sm_count" # what its warps write of C: each tile, and the part of one that each block ends with,
WAITS = "BLOCKS * TM * TN * WARPS // SHARE_TILES" # and what the blocks of a tile write one after the other

[parameters]
WARPS = 8     # of a block
ROWS = 96     # of C per block; 0: 64, 128 or 256
TM = 12       # rows of C per thread
TN = 16       # columns of C per thread
STAGES = 4    # 0: four, or three where a stage is large
BLOCKS_PER_SM = 1 # 0: two, or three of four warps; of 256 rows one less
SCALE_FIRST = 0

[candidates]
ROWS = [0, 64, 96, 128, 256]
TM = [8, 12]
TN = [8, 16]
STAGES = [3, 4, 5]
BLOCKS_PER_SM = [0, 1, 2]

[[require]]
condition = "N % 4 == 0 and K % 4 == 0"
because = "{id} copies 16 bytes at a time: N and K must be multiples of 4"

[[require]]
condition = "block_x == 32 * WARPS and (WARPS == 4 or WARPS == 8) and TM > 0 and TM % 4 == 0 and TN > 0 and TN % 4 == 0 and BM >= 32 and BM % (8 * TM) == 0 and 8 * WARPS * TM % BM == 0 and BM % 32 == 0"
because = "{id} needs a block of 4 or 8 WARPS, TM and TN multiples of 4, and ROWS a multiple of 32 and 8 * TM times a divisor of WARPS"

[[require]]
condition = "BM <= 256"
because = "{id} copies A in one box, of 256 rows at most"

[[require]]
condition = "DEEP >= 3"
because = "{id} needs three STAGES or more: one is computed from, one is turned, one fills"

[[require]]
condition = "BLOCKS_PER_SM >= 0 and sm_count * max(2, BLOCKS_PER_SM) <= 1024"
because = "{id} has room to mark the tiles of 1024 blocks"

[[require]]
condition = "arch >= 90"
because = "{id} uses bulk copies, which need compute capability 9.0"

[[require]]
condition = "arch < 120"
because = "{id} fills more shared memory than compute capability 12 has"
*/

#define THREADS BLOCK_X
#define LANES_M 8    // a warp's lanes: 8 along M by 4 along N
#define LANES_N 4
#define WARPS_N (WARPS / (BM / (LANES_M * TM)))
#define BN (WARPS_N * LANES_N * TN)        // columns of C per block
#define BOX_N (BN < 256 ? BN : 256)        // columns of B per copy: the engine takes no more
#define BOX_BYTES (BOX_N * BK * 4)
// A warp turns pieces of A's tile, each of 32 rows by 4 k, or by 2 where these share out evenly and those do not.
#define TURN_K (BM / 32 * (BK / 4) % WARPS ? 2 : 4)
#define CHUNKS (BK / TURN_K)
#define PARTS (4 / TURN_K)                 // of 16 bytes of a row
#define TURNS (BM / 32 * CHUNKS / WARPS)   // pieces of a warp
#define TURN_ROWS (WARPS / CHUNKS * 32)    // rows from one of a warp's pieces to its next
#define TOGETHER (TURNS > 4 ? 2 : 1)       // of them that it turns at once
#define STEP (TURNS * 4 < BK ? 4 : 2)      // values of k between two turns, which leave some of a tile's
#define UNROLLED (TM * TN <= 64 ? TURNS : 1) // turns: many sums make a loop too long for the instruction cache
#define A_BYTES (BM * BK * 4)
#define B_BYTES (BN * BK * 4)
#define TURNED A_BYTES                     // a stage holds A as it arrived, A turned, and B
#define SCALED (SCALE_FIRST && !WHOLE)     // whether C is scaled first, and then added to
#define STAGE_BYTES (2 * A_BYTES + B_BYTES)

#include "tma.cuh"

#if SCALED
#include "scale_first.cuh"
#endif
#ifdef PACKED
#include "pack_rows.cuh"
#include "write_any_n.cuh" // in the place of the vectors below
#define TO_PACK , const float *A, const float *B, float *A_packed, float *B_packed
#else
#define TO_PACK
#endif

// Set by each block once it has written a piece of a tile that the next block ends.
static __device__ unsigned written[1024];

extern "C" __global__ void __launch_bounds__(THREADS, SM_BLOCKS)
    streamk(int M, int N, int K, float alpha, const __grid_constant__ TensorMap A_map,
            const __grid_constant__ TensorMap B_map, float beta, float *C TO_PACK)
{
    // Coordinates. A lane's rows and columns come in groups of four neighbours; the groups of a warp interleave.
    const int t = threadIdx.x;
    const int lane = t % 32;
    const int warp = t / 32;
    const int lane_n = lane / 2 % LANES_N;
    const int lane_m = lane % 2 + lane / 8 * 2;
    const int m_thread = warp / WARPS_N % (WARPS / WARPS_N) * LANES_M * TM + lane_m * 4; // + 4 * LANES_M per group of rows
    const int n_thread = (WARPS_N == WARPS ? warp : warp % WARPS_N) * LANES_N * TN + lane_n * 4; // + 4 * LANES_N per group of columns

    // This block's share: of all k-tiles of all tiles of C, one after the other, as many as every other block's. It
    // is walked piece by piece, a piece being what lies in one tile of C, and the last piece comes first.
    const int tiles_n = (N + BN - 1) / BN;
    const int depth = (K + BK - 1) / BK;
    const long long total = (long long)((M + BM - 1) / BM) * tiles_n * depth;
    const int first = (int)(total * blockIdx.x / gridDim.x);
    const int last = (int)(total * (blockIdx.x + 1) / gridDim.x);
    const int tiles = last - first;
    const auto piece_before = [&](int end) { return max(first, (end - 1) / depth * depth); };

    // Shared memory: DEEP stages; for each a barrier that counts the bytes which have arrived, and one for all
    // that counts the threads which have turned their pieces of A.
    extern __shared__ __align__(1024) char shared[];
    __shared__ __align__(8) unsigned long long barriers[DEEP + 1];
    const unsigned stages = (unsigned)__cvta_generic_to_shared(shared);
    const unsigned arrived = (unsigned)__cvta_generic_to_shared(barriers);
    const unsigned turned = arrived + 8 * DEEP;
    if (t == 0) {
        for (int stage = 0; stage < DEEP; ++stage)
            init_barrier(arrived + 8 * stage, 1);
        init_barrier(turned, THREADS);
        publish_barriers();
    }
    __syncthreads();
#ifdef PACKED
    pack_rows(M, N, K, A, B, A_packed, B_packed);
#endif

    // Fetch the share's next k-tile: one thread tells the barrier what to expect and starts the copies. The warps take
    // turns at it, so that none falls behind. All threads keep count, which costs them nothing: the numbers are the
    // same in a whole warp.
    int fetched_to = last; // where the piece begins that was begun last
    int left = 0;          // k-tiles of it that are still to be fetched
    int next_k = 0;
    int next_m = 0;
    int next_n = 0;
    const auto fetch = [&](int tile) {
        if (left == 0) {
            const int begin = piece_before(fetched_to);
            left = fetched_to - begin;
            fetched_to = begin;
            next_k = begin % depth * BK;
            next_m = begin / depth / tiles_n * BM;
            next_n = begin / depth % tiles_n * BN;
        }
        if (t == tile % WARPS * 32) {
            const unsigned barrier = arrived + 8 * (tile % DEEP);
            const unsigned stage = stages + tile % DEEP * STAGE_BYTES;
            expect_bytes(barrier, A_BYTES + B_BYTES);
            copy_box(stage, &A_map, next_k, next_m, barrier);
            for (int n = 0; n < BN; n += BOX_N)
                copy_box(stage + 2 * A_BYTES + n / BOX_N * BOX_BYTES, &B_map, next_n + n, next_k, barrier);
        }
        next_k += BK;
        --left;
    };

    // Turn: a lane reads TURN_K values of its row, which arrived as neighbours, and stores them so that rows are
    // neighbours. The engine has permuted each row's four 16-byte parts by its number (swizzle), so that the reads of a
    // warp spread over all banks.
    const int chunk = CHUNKS == WARPS ? warp : warp % CHUNKS;
    const int turn_row = warp / CHUNKS % (WARPS / CHUNKS) * 32 + lane;
    const int turn_from = turn_row * (BK * 4) + ((chunk / PARTS ^ (turn_row / 2 % 4)) << 4) + chunk % PARTS * TURN_K * 4;
    const int turn_to = TURNED + (TURN_K * chunk * BM + turn_row) * 4;
    float pieces[TOGETHER][TURN_K];
    const auto load_pieces = [&](unsigned from) {
#pragma unroll
        for (int i = 0; i < TOGETHER; ++i)
            if constexpr (TURN_K == 4)
                *(float4 *)pieces[i] = load4(from + i * TURN_ROWS * BK * 4);
            else
                *(float2 *)pieces[i] = load2(from + i * TURN_ROWS * BK * 4);
    };
    const auto store_turned = [&](unsigned target) {
#pragma unroll
        for (int i = 0; i < TOGETHER; ++i)
#pragma unroll
            for (int k = 0; k < TURN_K; ++k)
                store(target + (k * BM + i * TURN_ROWS) * 4, pieces[i][k]);
    };
    const auto arrive = [&]() { arrive_at(turned); };

    // Operands of one k, and of the next.
    float a[2][TM];
    float b[2][TN];
    const auto load = [&](int set, unsigned a_row, unsigned b_row) {
#pragma unroll
        for (int i = 0; i < TM; i += 4)
            *(float4 *)&a[set][i] = load4(a_row + i * LANES_M * 4);
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            *(float4 *)&b[set][j] = load4(b_row + j * LANES_N * 4);
    };

    // Load and turn the first tile, then load the operands of its first k.
    const int a_first = TURNED + m_thread * 4;
    const int b_first = 2 * A_BYTES + n_thread / BOX_N * BOX_BYTES + n_thread % BOX_N * 4;
    for (int tile = 0; tile < min(tiles, DEEP - 1); ++tile)
        fetch(tile);
#if SCALED
    scale_slice(M, N, beta, C);
#endif
    wait(arrived, 0);
#pragma unroll
    for (int i = 0; i < TURNS; i += TOGETHER) {
        load_pieces(stages + turn_from + i * TURN_ROWS * BK * 4);
        store_turned(stages + turn_to + i * TURN_ROWS * 4);
    }
    arrive();
    wait(turned, 0);
    unsigned a_row = stages + a_first;
    unsigned b_row = stages + b_first;
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
            const unsigned next = stages + (tile + 1) % DEEP * STAGE_BYTES;
            const unsigned after = more ? next : stages + tile % DEEP * STAGE_BYTES; // of the last tile any will do
            if (more)
                wait(arrived + 8 * ((tile + 1) % DEEP), (tile + 1) / DEEP % 2);

            // Compute STEP values of k at a time, and turn pieces of the next tile meanwhile.
            unsigned from = after + turn_from;
            unsigned to = next + turn_to;
#pragma unroll(UNROLLED)
            for (int i = 0; i < TURNS; i += TOGETHER) {
                load_pieces(from);
#pragma unroll
                for (int k = 0; k < STEP; ++k) {
                    load((k + 1) % 2, a_row + (k + 1) * BM * 4, b_row + (k + 1) * BOX_N * 4);
                    multiply(k % 2);
                }
                store_turned(to);
                a_row += STEP * BM * 4;
                b_row += STEP * BOX_N * 4;
                from += TOGETHER * TURN_ROWS * BK * 4;
                to += TOGETHER * TURN_ROWS * 4;
            }
            arrive();
#pragma unroll
            for (int k = 0; k < BK - TURNS / TOGETHER * STEP; ++k) {
                if (k == BK - TURNS / TOGETHER * STEP - 1) {
                    // Sync before the last k, whose operands are in registers: once all warps have turned their pieces
                    // of the next tile, they are done with the tile before this one, and its stage may fill again.
                    if (more)
                        wait(turned, (tile + 1) % 2);
                    if (tile + DEEP - 1 < tiles)
                        fetch(tile + DEEP - 1);
                    __syncwarp();
                    a_row = after + a_first - (k + 1) * BM * 4;
                    b_row = after + b_first - (k + 1) * BOX_N * 4;
                }
                load((k + 1) % 2, a_row + (k + 1) * BM * 4, b_row + (k + 1) * BOX_N * 4);
                multiply(k % 2);
            }
            a_row = after + a_first;
            b_row = after + b_first;
        }

        // Write back. Whoever has a tile's first k-tiles writes C anew; the others wait for their predecessor, which
        // computes that piece before all its others, and add to what it wrote.
        const bool is_head = !SCALED && begin % depth == 0;
        const bool is_tail = end % depth == 0;
        const int m0 = begin / depth / tiles_n * BM;
        const int n0 = begin / depth % tiles_n * BN;
#if SCALED
        if (end == last)
            wait_until_scaled();
#else
        if (!is_head) {
            if (t == 0) {
                while (*(volatile unsigned *)&written[blockIdx.x - 1] == 0)
                    ;
                written[blockIdx.x - 1] = 0; // ready for the next launch
                __threadfence();
            }
            __syncthreads();
        }
#endif
#ifdef PACKED
        const auto write = [&](auto one) {
            each_element(sum, m0 + m_thread, n0 + n_thread, M, N, alpha, C, shared + DEEP * STAGE_BYTES, one);
        };
        if (is_head)
            write([&](float *target, float value, bool exists) {
                if (exists)
                    *target = beta == 0 ? value : value + beta * *target;
            });
        else
            write(add);
#else
#pragma unroll
        for (int i = 0; i < TM; ++i) {
            const int row = m0 + m_thread + i / 4 * 4 * LANES_M + i % 4;
            if (row >= M)
                continue;
#pragma unroll
            for (int j = 0; j < TN; j += 4) {
                const int col = n0 + n_thread + j * LANES_N;
                if (col >= N)
                    continue;
                float4 *c = (float4 *)(C + (size_t)row * N + col);
                const float4 value =
                    make_float4(alpha * sum[i][j], alpha * sum[i][j + 1], alpha * sum[i][j + 2], alpha * sum[i][j + 3]);
                if (is_head && beta == 0)
                    *c = value;
                else if (is_head) {
                    const float4 old = *c;
                    *c = make_float4(value.x + beta * old.x, value.y + beta * old.y, value.z + beta * old.z,
                                     value.w + beta * old.w);
                } else
                    add4(c, value);
            }
        }
#endif
        if (!SCALED && !is_tail) {
            __threadfence();
            __syncthreads();
            if (t == 0)
                *(volatile unsigned *)&written[blockIdx.x] = 1;
        }
    }
}
