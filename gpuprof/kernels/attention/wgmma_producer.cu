// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
operation = "attention"
dtypes = ["bf16", "f16"]
title = "A warp that fetches, warpgroups that multiply"
rung = 70
idea = "One thread of its own fetches tiles of keys and values as soon as stages are free; two warpgroups, each with 64 queries, do nothing but compute. Barriers in shared memory say of each tile when it is full and when it is empty."
after = "wgmma_tma"
change = "No warpgroup waits for the other: barriers of the block are gone from the loop, and while one computes weights the other may multiply. A third warpgroup gives its registers to the others."
bottleneck = "Within a warpgroup products and weights take turns; that the other one fills the gap is left to chance."

[moves]
barriers = "falls"
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
entry = "wgmma_producer"
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

[candidates]
BM = [128, 192]
BN = [64, 96, 128, 160, 176, 192]
STAGES = [2, 3, 4, 5]

[[require]]
condition = "BM == 128 or BM == 192"
because = "{id} has two or three warpgroups that multiply"

[[require]]
condition = "STAGES >= 2"
because = "{id} needs two STAGES or more: one is computed from, the others fill"

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
    wgmma_producer(int sequence, int causal, const __grid_constant__ TensorMap Q_map, const __grid_constant__ TensorMap K_map,
       const __grid_constant__ TensorMap V_map, real *O)
{
    // Coordinates.
    const int t = threadIdx.x;
    const int head = blockIdx.y;
    const int tiles = (sequence + BN - 1) / BN;

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
        // The warpgroup that fetches: one thread of it.
        shrink_to<BM == 128 ? 24 : 32>();
        if (t > 0)
            return;
        expect_bytes(queries_full, Q_BYTES);
        copy_tile<BM>(queries, &Q_map, blockIdx.x * BM, head, queries_full);
        for (int turn = 0; turn < 2 * tiles; ++turn) {
            const unsigned barrier = full + 8 * (turn % STAGES);
            wait(empty + 8 * (turn % STAGES), turn / STAGES % 2 ^ 1); // at once in the first round
            expect_bytes(barrier, TILE);
            copy_tile<BN>(stages + turn % STAGES * TILE, turn % 2 ? &V_map : &K_map, turn / 2 * BN, head, barrier);
        }
        return;
    }

    // The warpgroups that multiply.
    grow_to<BM == 128 ? 240 : 160>();
    const int group = __shfl_sync(0xffffffff, t / 128 - 1, 0); // the compiler knows that a warp has one
    const int row = blockIdx.x * BM + (t - 128) / 32 * 16 + t % 32 / 4; // and the one eight further down
    const auto tile_of = [&](int turn) {
        wait(full + 8 * (turn % STAGES), turn / STAGES % 2);
        return stages + turn % STAGES * TILE;
    };
    const auto release = [&](int turn) {
        if (t % 32 == 0)
            arrive_at(empty + 8 * (turn % STAGES));
    };
    wait(queries_full, 0);
    Rows rows = no_rows();
    float out[D / 2] = {};
#pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
        // Scores.
        float scores[BN / 2];
        const unsigned keys = tile_of(2 * tile);
        begin_products();
        start_scores<BM>(scores, queries + group * (64 * 128), keys);
        close_products();
        wait_for_products<0>();
        release(2 * tile);

        // Weights.
        mask(scores, row, tile * BN, sequence, causal);
        weigh(scores, rows);
        rescale(out, rows);
        unsigned weights[BN / 16][4];
        take_all(weights, scores);

        // Weighted sums.
        const unsigned values = tile_of(2 * tile + 1);
        begin_products();
        start_sums(out, weights, values);
        close_products();
        wait_for_products<0>();
        release(2 * tile + 1);
    }
    write_rows(out, rows, O + (size_t)head * sequence * D, row, sequence);
}
