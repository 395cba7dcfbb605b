// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
operation = "attention"
dtypes = ["bf16", "f16"]
study = "I"

[[variants]]
id = "overlap_persistent"
rung = 94
title = "One block an SM"
idea = "As many blocks as SMs, each with queries after queries: scores of the next ones run beside the last sums of these, which are written while tensor cores compute. Causal: all heads' queries of the most keys come first, dealt to the SMs there and back."
after = "overlap_skip"
change = "A block is begun once an SM: grid_blocks fall. Neighbouring lanes swap what they have of a row, so that each stores 16 bytes at once: global_store_requests fall."
bottleneck = "The power that tensor cores may draw."

[variants.moves]
grid_blocks = "falls"
global_store_requests = "falls"

[[variants]]
id = "overlap_persistent_128"
rung = 95
shape_of = "overlap_persistent"
title = "Tiles of 128 keys"
idea = "For short sequences, of which tiles of 128 keys leave over less."
after = "overlap_persistent"
change = "Fewer keys a tile, and one more of them on its way: together they take less room, shared_bytes fall."
bottleneck = "Beginning and end of what few tiles there are."
parameters = { BN = 128, STAGES = 4 }

[variants.moves]
shared_bytes = "falls"

[[variants]]
id = "overlap_persistent_192x128"
rung = 96
shape_of = "overlap_persistent"
title = "Three warpgroups that multiply"
idea = "For heads of 64, as overlap_skip_192x128."
after = "overlap_persistent"
change = "More threads, fewer keys a tile: block_threads rise."
bottleneck = "Exponentials, as there."
parameters = { BM = 192, BN = 128, STAGES = 4 }

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
entry = "overlap_persistent"
arguments = ["batch", "heads", "sequence", "causal", "Q_map", "K_map", "V_map", "O"]
block = ["128 + 2 * BM"]
grid = ["min(sm_count, cdiv(sequence, BM) * batch * heads)"]
dynamic_shared_bytes = "(2 * BM + STAGES * BN) * D * real_bytes"

[constants]
D = "head"

[parameters]
BM = 128   # queries of a block, 64 for each warpgroup that multiplies
BN = 176   # keys of a tile
STAGES = 3 # tiles of keys or values in shared memory

[candidates]
BM = [128, 192]
BN = [64, 96, 128, 160, 176, 192]
STAGES = [3, 4, 5]

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

// An item of work, BM queries: their first row, whose they are, and how many tiles of keys they attend to.
struct Work {
    int row0, head, tiles;
};
// The item-th of all. Causal: those of the most keys come first, of so many heads at a time.
static __device__ __forceinline__ Work work_of(int item, int heads, int at_a_time, int sequence, bool causal)
{
    const int of_head = (sequence + BM - 1) / BM;
    if (!causal)
        return {item % of_head * BM, item / of_head, (sequence + BN - 1) / BN};
    const int first = item / (at_a_time * of_head) * at_a_time;
    const int here = min(at_a_time, heads - first); // the last heads may be fewer
    const int place = item % (at_a_time * of_head);
    const int row0 = (of_head - 1 - place / here) * BM;
    return {row0, first + place % here, (min(sequence, row0 + BM) + BN - 1) / BN};
}
static __device__ __forceinline__ int common_divisor(int a, int b)
{
    while (b) {
        const int rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    overlap_persistent(int batch, int heads, int sequence, int causal, const __grid_constant__ TensorMap Q_map,
                       const __grid_constant__ TensorMap K_map, const __grid_constant__ TensorMap V_map, real *O)
{
    // Coordinates. Items are dealt there and back, as many heads' as fill whole rounds of both: a block that gets more tiles
    // than others on the way there gets fewer on the way back.
    const int t = threadIdx.x;
    const int of_head = (sequence + BM - 1) / BM;
    const int items = of_head * batch * heads;
    const int at_a_time = 2 * gridDim.x / common_divisor(2 * gridDim.x, of_head);
    const auto item_of = [&](int i) { return (int)(i * gridDim.x + (i % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x)); };
    const auto find = [&](int i) { return work_of(item_of(i), batch * heads, at_a_time, sequence, causal); };

    // Shared memory: queries of two items, then STAGES tiles, of keys and of values in the order of their use. Of each a
    // barrier counts the bytes which have arrived, and one the warps which are done with it.
    extern __shared__ __align__(1024) char shared[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES + 4];
    const unsigned queries = (unsigned)__cvta_generic_to_shared(shared);
    const unsigned stages = queries + 2 * Q_BYTES;
    const unsigned full = (unsigned)__cvta_generic_to_shared(barriers);
    const unsigned empty = full + 8 * STAGES;
    const unsigned queries_full = empty + 8 * STAGES;
    const unsigned queries_empty = queries_full + 16;
    if (t == 0) {
        for (int i = 0; i < STAGES; ++i) {
            init_barrier(full + 8 * i, 1);
            init_barrier(empty + 8 * i, BM / 64 * 4);
        }
        for (int i = 0; i < 2; ++i) {
            init_barrier(queries_full + 8 * i, 1);
            init_barrier(queries_empty + 8 * i, BM / 64 * 4);
        }
        publish_barriers();
    }
    __syncthreads();

    if (t < 128) {
        // The warpgroup that fetches: one thread of it. Keys are one tile ahead of values, across items too.
        shrink_to<BM == 128 ? 24 : 32>();
        if (t > 0)
            return;
        int turn = 0, value_tile = -1, value_head = 0;
        const auto fetch = [&](const TensorMap *map, int tile, int head) {
            const unsigned barrier = full + 8 * (turn % STAGES);
            wait(empty + 8 * (turn % STAGES), turn / STAGES % 2 ^ 1); // at once in the first round
            expect_bytes(barrier, TILE);
            copy_tile<BN>(stages + turn % STAGES * TILE, map, tile * BN, head, barrier);
            ++turn;
        };
        for (int i = 0; item_of(i) < items; ++i) {
            const unsigned barrier = queries_full + 8 * (i % 2);
            wait(queries_empty + 8 * (i % 2), i / 2 % 2 ^ 1);
            const Work work = find(i);
            expect_bytes(barrier, Q_BYTES);
            copy_tile<BM>(queries + i % 2 * Q_BYTES, &Q_map, work.row0, work.head, barrier);
            for (int tile = 0; tile < work.tiles; ++tile) {
                fetch(&K_map, tile, work.head);
                if (value_tile >= 0)
                    fetch(&V_map, value_tile, value_head);
                value_tile = tile;
                value_head = work.head;
            }
        }
        fetch(&V_map, value_tile, value_head);
        return;
    }

    // The warpgroups that multiply.
    grow_to<BM == 128 ? 240 : 160>();
    const int group = __shfl_sync(0xffffffff, t / 128 - 1, 0); // the compiler knows that a warp has one
    const int own_row = (t - 128) / 32 * 16 + t % 32 / 4; // of the block's queries, and the one eight further down
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

    // Scores and weights of the first tile.
    int i = 0;
    wait(queries_full, 0);
    int row0 = find(0).row0, tiles = find(0).tiles;
    unsigned own_queries = queries + group * (64 * 128);
    Rows rows = no_rows();
    float out[D / 2] = {};
    Rows ended; // those of the item before, whose sums out has until they are written
    bool has_ended = false;
    const auto write = [&](int which, const Rows &rows) {
        const Work work = find(which);
        write_words(out, rows, O + (size_t)work.head * sequence * D, work.row0 + own_row, sequence);
    };
    const auto prepare_sums = [&](int before) {
        if (has_ended) {
            write(before, ended);
            for (float &sum : out)
                sum = 0;
            has_ended = false;
        } else
            rescale(out, rows);
    };
    float scores[BN / 2];
    unsigned weights[BN / 16][4];
    unsigned keys = tile_of(0);
    begin_products();
    start_scores<BM>(scores, own_queries, keys);
    close_products();
    wait_for_products<0>();
    release(0);
    mask(scores, row0 + own_row, 0, sequence, causal);
    weigh(scores, rows);
    take_all(weights, scores);

    // Weighted sums of a tile, scores and weights of the next: of the same queries, or the first of the next ones.
    int turn = 1;
#pragma unroll 1
    for (int tile = 1;; ++tile) {
        if (tile == tiles) {
            if (t % 32 == 0)
                arrive_at(queries_empty + 8 * (i % 2));
            if (item_of(++i) >= items)
                break;
            wait(queries_full + 8 * (i % 2), i / 2 % 2);
            own_queries = queries + i % 2 * Q_BYTES + group * (64 * 128);
            tile = 0;
        }
        keys = tile_of(turn);
        take_turn(group);
        begin_products();
        start_scores<BM>(scores, own_queries, keys);
        close_products();
        prepare_sums(tile == 0 ? i - 2 : i - 1);
        const unsigned values = tile_of(turn + 1);
        begin_products();
        start_sums(out, weights, values);
        close_products();
        give_turn((group + 1) % (BM / 64));
        if (tile == 0) {
            const Work work = find(i);
            row0 = work.row0;
            tiles = work.tiles;
            ended = rows;
            has_ended = true;
            rows = no_rows();
        }
        wait_for_products<1>();
        release(turn);
        mask(scores, row0 + own_row, tile * BN, sequence, causal);
        weigh(scores, rows);
        finish(rows);
        wait_for_products<0>();
        release(turn + 1);
        take_all(weights, scores);
        turn += 2;
    }

    const unsigned values = tile_of(turn);
    prepare_sums(i - 2);
    begin_products();
    start_sums(out, weights, values);
    close_products();
    wait_for_products<0>();
    write(i - 1, rows);
    if (group == 0)
        take_turn(0); // the last one that is given
}
