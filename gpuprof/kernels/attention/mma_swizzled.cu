// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Swizzled tiles, ldmatrix"
operation = "attention"
rung = 40
dtypes = ["bf16", "f16"]
idea = "The 16-byte pieces of a row lie in an order that the row's number permutes, so that ldmatrix finds each 8x8 tile in all banks; and it turns tiles of V on the way."
after = "mma_sync"
change = "One ldmatrix in the place of 4 to 16 loads, without conflicts: shared_load_requests and bank conflicts fall."
bottleneck = "Latency: all warps wait for a tile of K and V from memory before they multiply."
arguments = ["sequence", "causal", "Q", "K", "V", "O"]

[moves]
shared_load_requests = "falls"
shared_load_bank_conflicts = "falls"

[launch]
block = [128]
grid = ["cdiv(sequence, 64)", "batch * heads"]

[constants]
BN = 64 # keys of a tile
D = "head"

[[require]]
condition = "D == 64 or D == 128"
because = "{id} has heads of 64 and 128"

[[require]]
condition = "arch >= 80"
because = "{id} multiplies bfloat16 on tensor cores, which needs compute capability 8.0"
*/

#include "rows.cuh"

// Where a piece of 8 neighbours lies in shared memory.
static __device__ __forceinline__ int place(int key, int column)
{
    return key * D + (column ^ key % 8 * 8);
}

extern "C" __global__ void __launch_bounds__(128) mma_swizzled(int sequence, int causal, const real *Q, const real *K,
                                                               const real *V, real *O)
{
    __shared__ __align__(128) real Ks[BN * D];
    __shared__ __align__(128) real Vs[BN * D];

    // Coordinates.
    const int t = threadIdx.x;
    const int lane = t % 32;
    const int row = blockIdx.x * 64 + t / 32 * 16 + lane / 4; // and the one eight further down
    const size_t head = (size_t)blockIdx.y * sequence * D;
    const unsigned k_tile = (unsigned)__cvta_generic_to_shared(Ks);
    const unsigned v_tile = (unsigned)__cvta_generic_to_shared(Vs);

    unsigned q[D / 16][4];
    load_queries(q, Q + head, row, sequence);
    Rows rows = no_rows();
    float out[D / 2] = {};
#pragma unroll 1
    for (int key0 = 0; key0 < sequence; key0 += BN) {
        // Load a tile of K and one of V, zeros beyond the sequence.
#pragma unroll
        for (int i = t * 8; i < BN * D; i += 128 * 8) {
            const int key = key0 + i / D;
            *(uint4 *)&Ks[place(i / D, i % D)] = load8<true>(K + head + (size_t)key * D + i % D, sequence - key);
            *(uint4 *)&Vs[place(i / D, i % D)] = load8<true>(V + head + (size_t)key * D + i % D, sequence - key);
        }
        __syncthreads();

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
        mask(scores, row, key0, sequence, causal);
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
        __syncthreads();
    }
    write_rows(out, rows, O + head, row, sequence);
}
