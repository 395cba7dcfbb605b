// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Products of a warpgroup, tiles by the copy engine"
operation = "attention"
rung = 60
dtypes = ["bf16", "f16"]
idea = "wgmma multiplies 64 queries with a tile of keys out of shared memory, then the weights, which stay in registers, with a tile of values. One thread asks the copy engine for the tiles."
after = "mma_async"
change = "No operand but the weights passes through registers, and no thread copies: shared_load_requests and async_copy_requests fall to nothing."
bottleneck = "Tensor cores stand still while weights are computed, and both warpgroups wait for each other at each tile."
arguments = ["sequence", "causal", "Q_map", "K_map", "V_map", "O"]

[moves]
shared_load_requests = "falls"
async_copy_requests = "falls"

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

[launch]
block = [256]
grid = ["cdiv(sequence, BM)", "batch * heads"]
dynamic_shared_bytes = "(BM + STAGES * 2 * BN) * D * real_bytes"

[constants]
BM = 128 # queries of a block
D = "head"

[parameters]
BN = 128   # keys of a tile
STAGES = 2 # tiles of keys and values in shared memory

[candidates]
BN = [64, 96, 128]
STAGES = [2, 3]

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

#define THREADS BLOCK_X
#define Q_BYTES (2 * BM * D)
#define TILE (2 * BN * D) // bytes of one of keys or of values

#include "products.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    wgmma_tma(int sequence, int causal, const __grid_constant__ TensorMap Q_map, const __grid_constant__ TensorMap K_map,
              const __grid_constant__ TensorMap V_map, real *O)
{
    // Coordinates.
    const int t = threadIdx.x;
    const int head = blockIdx.y;
    const int row = blockIdx.x * BM + t / 32 * 16 + t % 32 / 4; // and the one eight further down
    const int tiles = (sequence + BN - 1) / BN;

    // Shared memory: queries, then STAGES tiles of keys and of values; barriers count the bytes which have arrived.
    extern __shared__ __align__(1024) char shared[];
    __shared__ __align__(8) unsigned long long barriers[STAGES + 1];
    const unsigned queries = (unsigned)__cvta_generic_to_shared(shared);
    const unsigned stages = queries + Q_BYTES;
    const unsigned arrived = (unsigned)__cvta_generic_to_shared(barriers);
    if (t == 0) {
        for (int i = 0; i <= STAGES; ++i)
            init_barrier(arrived + 8 * i, 1);
        publish_barriers();
    }
    __syncthreads();

    // Fetch a tile of keys and one of values.
    const auto fetch = [&](int tile) {
        if (t == 0 && tile < tiles) {
            const unsigned stage = stages + tile % STAGES * (2 * TILE);
            const unsigned barrier = arrived + 8 * (tile % STAGES);
            expect_bytes(barrier, 2 * TILE);
            copy_tile<BN>(stage, &K_map, tile * BN, head, barrier);
            copy_tile<BN>(stage + TILE, &V_map, tile * BN, head, barrier);
        }
    };
    if (t == 0) {
        expect_bytes(arrived + 8 * STAGES, Q_BYTES);
        copy_tile<BM>(queries, &Q_map, blockIdx.x * BM, head, arrived + 8 * STAGES);
    }
    for (int i = 0; i < STAGES - 1; ++i)
        fetch(i);
    wait(arrived + 8 * STAGES, 0);

    Rows rows = no_rows();
    float out[D / 2] = {};
#pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
        // Sync: this tile is complete, and no product reads any more from the one before, whose stage fills next.
        wait(arrived + 8 * (tile % STAGES), tile / STAGES % 2);
        __syncthreads();
        fetch(tile + STAGES - 1);
        const unsigned keys = stages + tile % STAGES * (2 * TILE);

        // Scores.
        float scores[BN / 2];
        begin_products();
        start_scores<BM>(scores, queries + t / 128 * (64 * 128), keys);
        close_products();
        wait_for_products<0>();

        // Weights.
        mask(scores, row, tile * BN, sequence, causal);
        weigh(scores, rows);
        rescale(out, rows);
        unsigned weights[BN / 16][4];
        take_all(weights, scores);

        // Weighted sums.
        begin_products();
        start_sums(out, weights, keys + TILE);
        close_products();
        wait_for_products<0>();
    }
    write_rows(out, rows, O + (size_t)head * sequence * D, row, sequence);
}
