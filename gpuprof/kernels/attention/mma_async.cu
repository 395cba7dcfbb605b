// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Tiles in flight by cp.async"
operation = "attention"
rung = 50
dtypes = ["bf16", "f16"]
idea = "Copies go from memory to shared memory without passing through registers, and nobody waits for them: while one tile of K and V is multiplied, the next one is on its way."
after = "mma_swizzled"
change = "The wait for memory lies behind the products of a tile, and one barrier a tile is enough: barriers fall, and no thread stores to shared memory."
bottleneck = "Tensor cores by mma.sync, which reach about two thirds of their peak on an H100, and stand still while their warp computes exponentials."
arguments = ["sequence", "causal", "Q", "K", "V", "O"]

[moves]
barriers = "falls"
shared_store_requests = "falls"

[launch]
block = [128]
grid = ["cdiv(sequence, 64)", "batch * heads"]
dynamic_shared_bytes = "STAGES * 2 * BN * D * real_bytes"

[constants]
BN = 64 # keys of a tile
D = "head"

[parameters]
STAGES = 2 # tiles in shared memory

[candidates]
STAGES = [2, 3]

[[require]]
condition = "STAGES >= 2"
because = "{id} needs two STAGES or more: one is computed from, the others fill"

[[require]]
condition = "D == 64 or D == 128"
because = "{id} has heads of 64 and 128"

[[require]]
condition = "arch >= 80"
because = "{id} multiplies bfloat16 on tensor cores, which needs compute capability 8.0"
*/

#include "cp_async.cuh"
#include "rows.cuh"

// Where a piece of 8 neighbours lies in shared memory.
static __device__ __forceinline__ int place(int key, int column)
{
    return key * D + (column ^ key % 8 * 8);
}

extern "C" __global__ void __launch_bounds__(128) mma_async(int sequence, int causal, const real *Q, const real *K, const real *V,
                                                            real *O)
{
    extern __shared__ __align__(128) real shared[]; // (stage, K's tile and V's)

    // Coordinates.
    const int t = threadIdx.x;
    const int lane = t % 32;
    const int row = blockIdx.x * 64 + t / 32 * 16 + lane / 4; // and the one eight further down
    const size_t head = (size_t)blockIdx.y * sequence * D;
    const int tiles = (sequence + BN - 1) / BN;

    // Fetch a tile of K and one of V, zeros beyond the sequence. Every call closes a group of copies, if only an empty one.
    const auto fetch = [&](int tile) {
        if (tile < tiles) {
            real *Ks = shared + tile % STAGES * (2 * BN * D);
#pragma unroll
            for (int i = t * 8; i < BN * D; i += 128 * 8) {
                const int key = tile * BN + i / D;
                const size_t from = head + (size_t)(key < sequence ? key : 0) * D + i % D;
                copy<16>(Ks + place(i / D, i % D), K + from, key < sequence);
                copy<16>(Ks + BN * D + place(i / D, i % D), V + from, key < sequence);
            }
        }
        close_group();
    };
    for (int i = 0; i < STAGES - 1; ++i)
        fetch(i);

    unsigned q[D / 16][4];
    load_queries(q, Q + head, row, sequence);
    Rows rows = no_rows();
    float out[D / 2] = {};
#pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
        // Sync: this tile is complete, and nobody reads any more from the one before, whose stage fills next.
        wait_for_groups<STAGES - 2>();
        __syncthreads();
        fetch(tile + STAGES - 1);
        const unsigned k_tile = (unsigned)__cvta_generic_to_shared(shared + tile % STAGES * (2 * BN * D));
        const unsigned v_tile = k_tile + 2 * BN * D;

        // Scores.
        float scores[BN / 2] = {};
#pragma unroll
        for (int k = 0; k < D; k += 16)
#pragma unroll
            for (int n = 0; n < BN; n += 16) {
                unsigned keys[4]; // of eight keys the lower and the upper half of k, then of the next eight
                load_tiles(keys, k_tile + 2 * place(n + lane / 16 * 8 + lane % 8, k + lane / 8 % 2 * 8));
                multiply_add((float(&)[4])scores[n / 2], q[k / 16], keys[0], keys[1]);
                multiply_add((float(&)[4])scores[n / 2 + 4], q[k / 16], keys[2], keys[3]);
            }

        // Weights.
        mask(scores, row, tile * BN, sequence, causal);
        weigh(scores, rows);
        rescale(out, rows);

        // Weighted sums.
#pragma unroll
        for (int k = 0; k < BN; k += 16) {
            unsigned weights[4];
            take_weights(weights, scores, k / 16);
#pragma unroll
            for (int n = 0; n < D; n += 16) {
                unsigned values[4];
                load_turned(values, v_tile + 2 * place(k + lane % 16, n + lane / 16 * 8));
                multiply_add((float(&)[4])out[n / 2], weights, values[0], values[1]);
                multiply_add((float(&)[4])out[n / 2 + 4], weights, values[2], values[3]);
            }
        }
    }
    write_rows(out, rows, O + head, row, sequence);
}
