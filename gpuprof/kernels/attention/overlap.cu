// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
operation = "attention"
dtypes = ["bf16", "f16"]
study = "I"

[[variants]]
id = "overlap"
rung = 80
title = "Scores of the next tile meanwhile"
idea = "A warpgroup starts the scores of the next tile and the sums of this one together, and computes the next one's weights while tensor cores still add up this one's."
after = "wgmma_producer"
change = "Another order of the same products: a warpgroup's exponentials lie behind its own products, and what was summed up before is scaled only where a tile has brought a larger score. Nobody waits more often: barriers stay."
bottleneck = "Each tile ends with a wait for its sums, and each warpgroup reads all keys and values from shared memory again."

[variants.moves]
barriers = "stays"

[[variants]]
id = "overlap_turns"
rung = 82
title = "Warpgroups take turns"
idea = "Before it starts products a warpgroup waits for its turn, and passes it on as soon as they are started: the other's products run while it computes weights."
after = "overlap"
change = "Two named barriers a tile, one instruction each to wait and to arrive: barriers rise."
bottleneck = "The same: where weights are computed behind a warpgroup's own products, two of them fall into step by themselves, and waiting for a turn costs more than it brings."
parameters = { PINGPONG = 1 }

[variants.moves]
barriers = "rises"

[[variants]]
id = "overlap_176"
rung = 84
title = "Tiles of 176 keys"
idea = "As many keys at once as registers and shared memory hold: scores, weights and sums are 196 of the 240 registers of a thread."
after = "overlap"
change = "Fewer tiles, each with a wait, a maximum across lanes and a look at what is to be scaled: shared_bytes rise."
bottleneck = "Of a causal mask half of all tiles, which are multiplied and count for nothing."
parameters = { BN = 176 }

[variants.moves]
shared_bytes = "rises"

[[variants]]
id = "overlap_skip"
rung = 90
title = "Only keys that count"
idea = "Causal: a block ends with the tile that holds its last query, and blocks of the most keys begin first, so that the light ones fill up the end."
after = "overlap_176"
change = "Of a causal mask about half of the products. Without a mask nothing changes; grid_blocks stay in any case."
bottleneck = "The power that tensor cores may draw; and the beginning and end of a block, when its tensor cores have nothing to do."
parameters = { BN = 176, SKIP = 1 }

[variants.moves]
grid_blocks = "stays"

[[variants]]
id = "overlap_skip_192x128"
rung = 92
shape_of = "overlap_skip"
title = "Three warpgroups that multiply"
idea = "For heads of 64, whose sums take half of the registers: 192 queries a block share each tile of keys and values."
after = "overlap_skip"
change = "More threads, fewer keys a tile."
bottleneck = "Exponentials, of which an SM computes 16 a cycle: products of 64 columns take half as long as of 128, and exponentials as long."
parameters = { BM = 192, PINGPONG = 1, SKIP = 1 }

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
entry = "overlap"
arguments = ["sequence", "causal", "Q_map", "K_map", "V_map", "O"]
block = ["128 + 2 * BM"]
grid = ["cdiv(sequence, BM)", "batch * heads"]
dynamic_shared_bytes = "(BM + STAGES * BN) * D * real_bytes"

[constants]
D = "head"

[parameters]
BM = 128   # queries of a block, 64 for each warpgroup that multiplies
BN = 128   # keys of a tile
STAGES = 4 # tiles of keys or values in shared memory
PINGPONG = 0 # whether warpgroups take turns
SKIP = 0 # whether tiles without a key that counts are left out

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

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    overlap(int sequence, int causal, const __grid_constant__ TensorMap Q_map, const __grid_constant__ TensorMap K_map,
       const __grid_constant__ TensorMap V_map, real *O)
{
    // Coordinates.
    const int t = threadIdx.x;
    const int head = blockIdx.y;
    const int row0 = (SKIP && causal ? gridDim.x - 1 - blockIdx.x : blockIdx.x) * BM;
    const int tiles = ((SKIP && causal ? min(sequence, row0 + BM) : sequence) + BN - 1) / BN;

    // Shared memory: queries, then STAGES tiles, of keys and of values in the order of their use. Of each a barrier counts
    // the bytes which have arrived, and one the warps which are done with it.
    extern __shared__ __align__(1024) char shared[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES + 1];
    const unsigned queries = (unsigned)__cvta_generic_to_shared(shared);
    const unsigned stages = queries + Q_BYTES;
    const unsigned full = (unsigned)__cvta_generic_to_shared(barriers);
    const unsigned empty = full + 8 * STAGES;
    const unsigned queries_full = empty + 8 * STAGES;
    if (t == 0) {
        for (int i = 0; i < STAGES; ++i) {
            init_barrier(full + 8 * i, 1);
            init_barrier(empty + 8 * i, BM / 64 * 4);
        }
        init_barrier(queries_full, 1);
        publish_barriers();
    }
    __syncthreads();

    if (t < 128) {
        // The warpgroup that fetches: one thread of it. Keys are one tile ahead of values.
        shrink_to<BM == 128 ? 24 : 32>();
        if (t > 0)
            return;
        expect_bytes(queries_full, Q_BYTES);
        copy_tile<BM>(queries, &Q_map, row0, head, queries_full);
        int turn = 0;
        const auto fetch = [&](const TensorMap *map, int tile) {
            const unsigned barrier = full + 8 * (turn % STAGES);
            wait(empty + 8 * (turn % STAGES), turn / STAGES % 2 ^ 1); // at once in the first round
            expect_bytes(barrier, TILE);
            copy_tile<BN>(stages + turn % STAGES * TILE, map, tile * BN, head, barrier);
            ++turn;
        };
        for (int tile = 0; tile <= tiles; ++tile) {
            if (tile < tiles)
                fetch(&K_map, tile);
            if (tile > 0)
                fetch(&V_map, tile - 1);
        }
        return;
    }

    // The warpgroups that multiply.
    grow_to<BM == 128 ? 240 : 160>();
    const int group = __shfl_sync(0xffffffff, t / 128 - 1, 0); // the compiler knows that a warp has one
    const int row = row0 + (t - 128) / 32 * 16 + t % 32 / 4; // and the one eight further down
    const unsigned own_queries = queries + group * (64 * 128);
    const auto tile_of = [&](int turn) {
        wait(full + 8 * (turn % STAGES), turn / STAGES % 2);
        return stages + turn % STAGES * TILE;
    };
    const auto release = [&](int turn) {
        if (t % 32 == 0)
            arrive_at(empty + 8 * (turn % STAGES));
    };
    if (PINGPONG && group == BM / 64 - 1)
        give_turn(0);
    wait(queries_full, 0);

    // Scores and weights of the first tile.
    Rows rows = no_rows();
    float out[D / 2] = {};
    float scores[BN / 2];
    unsigned weights[BN / 16][4];
    unsigned keys = tile_of(0);
    begin_products();
    start_scores<BM>(scores, own_queries, keys);
    close_products();
    wait_for_products<0>();
    release(0);
    mask(scores, row, 0, sequence, causal);
    weigh(scores, rows);
    take_all(weights, scores);

    // Weighted sums of a tile, scores and weights of the next.
#pragma unroll 1
    for (int tile = 1; tile < tiles; ++tile) {
        keys = tile_of(2 * tile - 1);
        if (PINGPONG)
            take_turn(group);
        begin_products();
        start_scores<BM>(scores, own_queries, keys);
        close_products();
        rescale(out, rows);
        const unsigned values = tile_of(2 * tile);
        begin_products();
        start_sums(out, weights, values);
        close_products();
        if (PINGPONG)
            give_turn((group + 1) % (BM / 64));
        wait_for_products<1>();
        release(2 * tile - 1);
        mask(scores, row, tile * BN, sequence, causal);
        weigh(scores, rows);
        finish(rows);
        wait_for_products<0>();
        release(2 * tile);
        take_all(weights, scores);
    }

    const unsigned values = tile_of(2 * tiles - 1);
    rescale(out, rows);
    begin_products();
    start_sums(out, weights, values);
    close_products();
    wait_for_products<0>();
    write_rows(out, rows, O + (size_t)head * sequence * D, row, sequence);
    if (PINGPONG && group == 0)
        take_turn(0); // the last one that is given
}
