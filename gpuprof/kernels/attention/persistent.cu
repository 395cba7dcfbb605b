// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
operation = "attention"
dtypes = ["bf16", "f16"]

[[variants]]
id = "persistent"
rung = 95
title = "One block an SM"
idea = "As many blocks as SMs, each with 128 queries after the others, causal ones dealt out to and fro, so that each has as much to do. The warp that fetches goes on to the next queries and their keys while the others still write O."
after = "overlap_skip"
change = "A block is begun once an SM: grid_blocks fall, and tensor cores wait for a first tile once."
bottleneck = "Exponentials, of which an SM computes 16 a cycle; and the power that tensor cores may draw."

[variants.moves]
grid_blocks = "falls"

[[variants]]
id = "persistent_192x128"
rung = 96
shape_of = "persistent"
title = "Three warpgroups that multiply"
idea = "For heads of 64, whose sums take half of the registers: 192 queries a block share each tile of keys and values."
after = "persistent"
change = "More threads and smaller tiles."
bottleneck = "Exponentials: products of 64 columns take half as long, and exponentials as long as for 128."
parameters = { BM = 192, BN = 128 }

[variants.moves]
block_threads = "rises"

[tensor_maps.Q_map]
array = "Q"
extents = ["D", "sequence", "batch * heads"]
box = ["64", "BM", "1"]
swizzle_bytes = 128

[tensor_maps.K_map]
array = "K"
extents = ["D", "sequence", "batch * heads"]
box = ["64", "BN", "1"]
swizzle_bytes = 128

[tensor_maps.V_map]
array = "V"
extents = ["D", "sequence", "batch * heads"]
box = ["64", "BN", "1"]
swizzle_bytes = 128

[[launches]]
entry = "persistent"
arguments = ["batch * heads", "sequence", "causal", "Q_map", "K_map", "V_map", "O"]
block = ["128 + 2 * BM"]
grid = ["min(sm_count, cdiv(sequence, BM) * batch * heads)"]
dynamic_shared_bytes = "(BM + STAGES * BN) * D * real_bytes"

[constants]
D = "head"

[parameters]
BM = 128   # queries of a block, 64 for each warpgroup that multiplies
BN = 176   # keys of a tile
STAGES = 4 # tiles of keys or values in shared memory
PINGPONG = 0 # whether warpgroups take turns

[candidates]
BM = [128, 192]
BN = [64, 96, 128, 160, 176, 192]
STAGES = [3, 4, 5]
PINGPONG = [0, 1]

[[require]]
condition = "BM == 128 or BM == 192"
because = "{id} has two or three warpgroups that multiply"

[[require]]
condition = "STAGES >= 3"
because = "{id} needs three STAGES or more: a tile of keys and one of values are computed from"

[[require]]
condition = "BN == 64 or BN == 96 or BN == 128 or BN == 160 or BN == 176 or BN == 192"
because = "{id} has products of 64, 96, 128, 160, 176 and 192 keys"

[[require]]
condition = "D == 64 or D == 128"
because = "{id} has heads of 64 and 128"

[[require]]
condition = "90 <= arch < 100"
because = "{id} multiplies by wgmma, which compute capability 9.0 alone has"
*/

#define THREADS (128 + 2 * BM)
#define Q_BYTES (2 * BM * D)
#define TILE (2 * BN * D) // bytes of one of keys or of values

#include "products.cuh"

// Wait for the turn of a warpgroup, or give it to one: the barrier of each is met by itself and the one before.
static __device__ __forceinline__ void take_turn(int group)
{
    if (PINGPONG)
        asm volatile("bar.sync %0, 256;" ::"r"(1 + group) : "memory");
}
static __device__ __forceinline__ void give_turn(int group)
{
    if (PINGPONG)
        asm volatile("bar.arrive %0, 256;" ::"r"(1 + group) : "memory");
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    persistent(int heads, int sequence, int causal, const __grid_constant__ TensorMap Q_map,
               const __grid_constant__ TensorMap K_map, const __grid_constant__ TensorMap V_map, real *O)
{
    // Coordinates: blocks of queries have numbers, head by head, causal ones of a head from the heaviest to the lightest. Each
    // round deals them out to the SMs, causal ones to and fro.
    const int t = threadIdx.x;
    const int blocks = (sequence + BM - 1) / BM; // of one head
    const auto number_of = [&](int round) {
        return round * gridDim.x + (causal && round % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
    };
    const auto first_row = [&](int number) { return (causal ? blocks - 1 - number % blocks : number % blocks) * BM; };
    const auto tiles_of = [&](int row0) { return ((causal ? min(sequence, row0 + BM) : sequence) + BN - 1) / BN; };

    // Shared memory: queries, then STAGES tiles, of keys and of values in the order of their use. Of each a barrier counts
    // the bytes which have arrived, and one the warps which are done with it.
    extern __shared__ __align__(1024) char shared[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES + 2];
    const unsigned queries = (unsigned)__cvta_generic_to_shared(shared);
    const unsigned stages = queries + Q_BYTES;
    const unsigned full = (unsigned)__cvta_generic_to_shared(barriers);
    const unsigned empty = full + 8 * STAGES;
    const unsigned queries_full = empty + 8 * STAGES;
    const unsigned queries_empty = queries_full + 8;
    if (t == 0) {
        for (int i = 0; i < STAGES; ++i) {
            init_barrier(full + 8 * i, 1);
            init_barrier(empty + 8 * i, BM / 64 * 4);
        }
        init_barrier(queries_full, 1);
        init_barrier(queries_empty, BM / 64 * 4);
        publish_barriers();
    }
    __syncthreads();

    if (t < 128) {
        // The warpgroup that fetches: one thread of it. Keys are one tile ahead of values.
        shrink_to<BM == 128 ? 24 : 32>();
        if (t > 0)
            return;
        int turn = 0;
        for (int round = 0; number_of(round) < heads * blocks; ++round) {
            const int number = number_of(round);
            wait(queries_empty, round % 2 ^ 1); // at once in the first round
            const int head = number / blocks;
            const int row0 = first_row(number);
            expect_bytes(queries_full, Q_BYTES);
            copy_tile<BM>(queries, &Q_map, row0, head, queries_full);
            const auto fetch = [&](const TensorMap *map, int tile) {
                const unsigned barrier = full + 8 * (turn % STAGES);
                wait(empty + 8 * (turn % STAGES), turn / STAGES % 2 ^ 1);
                expect_bytes(barrier, TILE);
                copy_tile<BN>(stages + turn % STAGES * TILE, map, tile * BN, head, barrier);
                ++turn;
            };
            const int tiles = tiles_of(row0);
            for (int tile = 0; tile <= tiles; ++tile) {
                if (tile < tiles)
                    fetch(&K_map, tile);
                if (tile > 0)
                    fetch(&V_map, tile - 1);
            }
        }
        return;
    }

    // The warpgroups that multiply.
    grow_to<BM == 128 ? 240 : 160>();
    const int group = __shfl_sync(0xffffffff, t / 128 - 1, 0); // the compiler knows that a warp has one
    const unsigned own_queries = queries + group * (64 * 128);
    const auto tile_of = [&](int turn) {
        wait(full + 8 * (turn % STAGES), turn / STAGES % 2);
        return stages + turn % STAGES * TILE;
    };
    const auto release = [&](int turn) {
        if (t % 32 == 0)
            arrive_at(empty + 8 * (turn % STAGES));
    };
    if (group == BM / 64 - 1)
        give_turn(0);
    int turn = 0;
#pragma unroll 1
    for (int round = 0; number_of(round) < heads * blocks; ++round) {
        const int number = number_of(round);
        wait(queries_full, round % 2);
        const int row0 = first_row(number);
        const int row = row0 + (t - 128) / 32 * 16 + t % 32 / 4; // and the one eight further down
        const int tiles = tiles_of(row0);

        // Scores and weights of the first tile.
        Rows rows = no_rows();
        float out[D / 2] = {};
        float scores[BN / 2];
        unsigned weights[BN / 16][4];
        unsigned keys = tile_of(turn);
        begin_products();
        start_scores<BM>(scores, own_queries, keys);
        close_products();
        wait_for_products<0>();
        release(turn);
        mask(scores, row, 0, sequence, causal);
        weigh(scores, rows);
        take_all(weights, scores);

        // Weighted sums of a tile, scores and weights of the next.
#pragma unroll 1
        for (int tile = 1; tile < tiles; ++tile) {
            keys = tile_of(turn + 1);
            take_turn(group);
            begin_products();
            start_scores<BM>(scores, own_queries, keys);
            close_products();
            rescale(out, rows);
            const unsigned values = tile_of(turn + 2);
            begin_products();
            start_sums(out, weights, values);
            close_products();
            give_turn((group + 1) % (BM / 64));
            wait_for_products<1>();
            release(turn + 1);
            mask(scores, row, tile * BN, sequence, causal);
            weigh(scores, rows);
            finish(rows);
            wait_for_products<0>();
            release(turn + 2);
            take_all(weights, scores);
            turn += 2;
        }
        if (t % 32 == 0)
            arrive_at(queries_empty);

        const unsigned values = tile_of(turn + 1);
        rescale(out, rows);
        begin_products();
        start_sums(out, weights, values);
        close_products();
        wait_for_products<0>();
        release(turn + 1);
        turn += 2;
        write_rows(out, rows, O + (size_t)(number / blocks) * sequence * D, row, sequence);
    }
    if (group == 0)
        take_turn(0); // the last one that is given
}
