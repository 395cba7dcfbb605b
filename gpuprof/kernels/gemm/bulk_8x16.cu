// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Tiles fetched by the copy engine"
problem = "gemm"
rung = 540
idea = "One thread asks the copy engine for whole tiles of A and B; the warps turn A inside shared memory, a piece at a time between FMAs."
after = "reg_8x16_pipelined"
change = "No thread loads from global memory, computes its addresses or checks its bounds, and warps wait for bytes and for each other in shared memory: barriers fall, and registers_per_thread with them."
bottleneck = "Shared-memory loads, six for each 128 FMAs, and the last wave of blocks, which rarely fills the GPU."
arguments = ["M", "N", "K", "alpha", "A_map", "B_map", "beta", "C"]

[moves]
barriers = "falls"
registers_per_thread = "falls"

[tensor_maps.A_map]
array = "A"
box = ["BK", "BM"]
swizzle_bytes = 64

[tensor_maps.B_map]
array = "B"
box = ["BN", "BK"]

[launch]
block = [256]
grid = ["cdiv(N, BN) * cdiv(M, BM)"]
dynamic_shared_bytes = "STAGES * BK * (2 * BM + BN) * real_bytes"

[constants]
BM = 128 # rows of C per block
BN = 256 # columns of C per block
BK = 16  # k per tile
BUSIEST = "cdiv(cdiv(M, BM) * cdiv(N, BN), sm_count)" # blocks for the SM that has most: its cycles of products,
CYCLES = "BUSIEST * K * BM * BN // 128"
WRITES = "BUSIEST * BM * BN // 32" # and what its warps write of C

[parameters]
STAGES = 4
PANEL = 1 # tile rows whose blocks run together

[candidates]
STAGES = [3, 4, 5, 6]
PANEL = [1, 2, 4, 8, 16, 32]

[[require]]
condition = "N % 4 == 0 and K % 4 == 0"
because = "bulk_8x16 copies 16 bytes at a time: N and K must be multiples of 4"

[[require]]
condition = "STAGES >= 3"
because = "bulk_8x16 needs three STAGES or more: one is computed from, one is turned, one fills"

[[require]]
condition = "PANEL >= 1"
because = "bulk_8x16 needs a PANEL of one tile row or more"

[[require]]
condition = "arch >= 90"
because = "bulk_8x16 uses bulk copies, which need compute capability 9.0"

[[require]]
condition = "arch < 120"
because = "bulk_8x16 fills 128 KiB of shared memory per block, more than compute capability 12 has"
*/

#define THREADS BLOCK_X
#define WARPS (THREADS / 32)
#define TM 8         // rows of C per thread
#define TN 16        // columns of C per thread
#define LANES_M 8    // a warp's lanes: 8 along M by 4 along N
#define LANES_N 4
#define WARPS_N (BN / (LANES_N * TN))
#define STEP 4       // values of k between two turns of the inner loop
#define CHUNKS (BK / 4)
#define TURNS (BM / 32 * CHUNKS / WARPS)   // pieces of A's tile, 32 rows by 4 k, that each warp turns
#define TURN_ROWS (WARPS / CHUNKS * 32)    // rows from one of a warp's pieces to its next
#define A_BYTES (BM * BK * 4)
#define B_BYTES (BN * BK * 4)
#define TURNED A_BYTES                     // a stage holds A as it arrived, A turned, and B
#define STAGE_BYTES (2 * A_BYTES + B_BYTES)

#include "tma.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    bulk_8x16(int M, int N, int K, float alpha, const __grid_constant__ TensorMap A_map,
              const __grid_constant__ TensorMap B_map, float beta, float *C)
{
    // Coordinates. A lane's rows and columns come in groups of four neighbours; the groups of a warp interleave.
    const int t = threadIdx.x;
    const int lane = t % 32;
    const int warp = t / 32;
    const int lane_n = lane / 2 % LANES_N;
    const int lane_m = lane % 2 + lane / 8 * 2;
    const int m_thread = warp / WARPS_N * LANES_M * TM + lane_m * 4; // + 4 * LANES_M per group of rows
    const int n_thread = warp % WARPS_N * LANES_N * TN + lane_n * 4; // + 4 * LANES_N per group of columns
    // Blocks go down the columns of a panel of PANEL tile rows, then to the next panel: those that run at the same
    // time cover a square of C rather than a stripe where PANEL is more than 1, and share more of A and B.
    const int tiles_m = (M + BM - 1) / BM;
    const int tiles_n = (N + BN - 1) / BN;
    const int panel = blockIdx.x / (PANEL * tiles_n);
    const int in_panel = blockIdx.x % (PANEL * tiles_n);
    const int height = min(PANEL, tiles_m - panel * PANEL); // the last panel may be lower
    const int m0 = (panel * PANEL + in_panel % height) * BM;
    const int n0 = in_panel / height * BN;
    const int tiles = (K + BK - 1) / BK;

    // Shared memory: STAGES stages; for each a barrier that counts the bytes which have arrived, and one for all
    // that counts the threads which have turned their pieces of A.
    extern __shared__ __align__(1024) char shared[];
    __shared__ __align__(8) unsigned long long barriers[STAGES + 1];
    const unsigned stages = (unsigned)__cvta_generic_to_shared(shared);
    const unsigned arrived = (unsigned)__cvta_generic_to_shared(barriers);
    const unsigned turned = arrived + 8 * STAGES;
    if (t == 0) {
        for (int stage = 0; stage < STAGES; ++stage)
            init_barrier(arrived + 8 * stage, 1);
        init_barrier(turned, THREADS);
        publish_barriers();
    }
    __syncthreads();

    // Fetch a k-tile: one thread tells the barrier what to expect and starts two copies. The warps take turns at it,
    // so that none falls behind.
    const auto fetch = [&](int tile) {
        if (t == tile % WARPS * 32) {
            const unsigned barrier = arrived + 8 * (tile % STAGES);
            const unsigned stage = stages + tile % STAGES * STAGE_BYTES;
            expect_bytes(barrier, A_BYTES + B_BYTES);
            copy_box(stage, &A_map, tile * BK, m0, barrier);
            copy_box(stage + 2 * A_BYTES, &B_map, n0, tile * BK, barrier);
        }
    };

    // Turn: a piece of A's tile is 32 rows by 4 k. A lane reads four k of its row, which arrived as neighbours, and
    // stores them so that rows are neighbours. The engine has permuted each row's four 16-byte parts by its number
    // (swizzle), so that the reads meet no bank conflicts.
    const int chunk = warp % CHUNKS;
    const int turn_row = warp / CHUNKS * 32 + lane;
    const int turn_from = turn_row * (BK * 4) + ((chunk ^ (turn_row / 2 % 4)) << 4);
    const int turn_to = TURNED + (chunk * 4 * BM + turn_row) * 4;
    const auto store_turned = [&](unsigned target, float4 v) {
        store(target, v.x);
        store(target + BM * 4, v.y);
        store(target + 2 * BM * 4, v.z);
        store(target + 3 * BM * 4, v.w);
    };
    const auto arrive = [&]() { arrive_at(turned); };

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

    // Load and turn the first tile, then load the operands of its first k.
    const int a_first = TURNED + m_thread * 4;
    const int b_first = 2 * A_BYTES + n_thread * 4;
    for (int tile = 0; tile < min(tiles, STAGES - 1); ++tile)
        fetch(tile);
    wait(arrived, 0);
#pragma unroll
    for (int i = 0; i < TURNS; ++i)
        store_turned(stages + turn_to + i * TURN_ROWS * 4, load4(stages + turn_from + i * TURN_ROWS * BK * 4));
    arrive();
    wait(turned, 0);
    unsigned a_row = stages + a_first;
    unsigned b_row = stages + b_first;
    load(0, a_row, b_row);

    float sum[TM][TN] = {};
    // The products of one k, row by row: two neighbours share an operand, which the register file then need not
    // deliver twice.
    const auto multiply = [&](int set) {
#pragma unroll
        for (int i = 0; i < TM; ++i)
#pragma unroll
            for (int j = 0; j < TN; ++j)
                sum[i][j] += a[set][i] * b[set][j];
    };

#pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
        const bool more = tile + 1 < tiles;
        const unsigned next = stages + (tile + 1) % STAGES * STAGE_BYTES;
        const unsigned after = more ? next : stages + tile % STAGES * STAGE_BYTES; // of the last tile any will do
        if (more)
            wait(arrived + 8 * ((tile + 1) % STAGES), (tile + 1) / STAGES % 2);

        // Compute STEP values of k at a time, and turn a piece of the next tile meanwhile.
        unsigned from = after + turn_from;
        unsigned to = next + turn_to;
#pragma unroll 1
        for (int i = 0; i < TURNS; ++i) {
            const float4 piece = load4(from);
#pragma unroll
            for (int k = 0; k < STEP; ++k) {
                load((k + 1) % 2, a_row + (k + 1) * BM * 4, b_row + (k + 1) * BN * 4);
                multiply(k % 2);
                if (k == 1)
                    store_turned(to, piece);
            }
            a_row += STEP * BM * 4;
            b_row += STEP * BN * 4;
            from += TURN_ROWS * BK * 4;
            to += TURN_ROWS * 4;
        }
        arrive();
#pragma unroll
        for (int k = 0; k < BK - TURNS * STEP; ++k) {
            if (k == BK - TURNS * STEP - 1) {
                // Sync before the last k, whose operands are in registers: once all warps have turned their pieces
                // of the next tile, they are done with the tile before this one, and its stage may fill again.
                if (more)
                    wait(turned, (tile + 1) % 2);
                if (tile + STAGES - 1 < tiles)
                    fetch(tile + STAGES - 1);
                __syncwarp();
                a_row = after + a_first - (k + 1) * BM * 4;
                b_row = after + b_first - (k + 1) * BN * 4;
            }
            load((k + 1) % 2, a_row + (k + 1) * BM * 4, b_row + (k + 1) * BN * 4);
            multiply(k % 2);
        }
        a_row = after + a_first;
        b_row = after + b_first;
    }

    // Write back.
#pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = m0 + m_thread + i / 4 * 4 * LANES_M + i % 4;
        if (row >= M)
            break;
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            const int col = n0 + n_thread + j * LANES_N;
            if (col >= N)
                continue;
            float4 *c = (float4 *)(C + (size_t)row * N + col);
            float4 value =
                make_float4(alpha * sum[i][j], alpha * sum[i][j + 1], alpha * sum[i][j + 2], alpha * sum[i][j + 3]);
            if (beta != 0) {
                const float4 old = *c;
                value = make_float4(value.x + beta * old.x, value.y + beta * old.y, value.z + beta * old.z,
                                    value.w + beta * old.w);
            }
            *c = value;
        }
    }
}
