// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Tensor cores by mma.sync"
operation = "attention"
rung = 30
dtypes = ["bf16", "f16"]
idea = "A warp has 16 queries, in registers, and multiplies them with 64 keys on tensor cores. What it then holds of the scores is what the next product takes as its left operand: weights never leave registers."
after = "online"
change = "Multiplications leave the CUDA cores: ffma_thread_instructions fall, and no weight passes through shared memory."
bottleneck = "Bank conflicts: rows of keys begin in the same bank, and of V two elements of a column make an operand, which are loaded one by one."
arguments = ["sequence", "causal", "Q", "K", "V", "O"]

[moves]
ffma_thread_instructions = "falls"
shared_store_requests = "falls"

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

extern "C" __global__ void __launch_bounds__(128) mma_sync(int sequence, int causal, const real *Q, const real *K, const real *V,
                                                           real *O)
{
    __shared__ __align__(16) real Ks[BN * D];
    __shared__ __align__(16) real Vs[BN * D];

    // Coordinates.
    const int t = threadIdx.x;
    const int lane = t % 32;
    const int row = blockIdx.x * 64 + t / 32 * 16 + lane / 4; // and the one eight further down
    const size_t head = (size_t)blockIdx.y * sequence * D;

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
            *(uint4 *)&Ks[i] = load8<true>(K + head + (size_t)key * D + i % D, sequence - key);
            *(uint4 *)&Vs[i] = load8<true>(V + head + (size_t)key * D + i % D, sequence - key);
        }
        __syncthreads();

        // Scores.
        float scores[BN / 2] = {};
#pragma unroll
        for (int k = 0; k < D; k += 16)
#pragma unroll
            for (int n = 0; n < BN; n += 8) {
                const unsigned *keys = (const unsigned *)&Ks[(n + lane / 4) * D + k + lane % 4 * 2];
                multiply_add((float(&)[4])scores[n / 2], q[k / 16], keys[0], keys[4]);
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
            for (int n = 0; n < D; n += 8) {
                const unsigned short *values = (const unsigned short *)&Vs[(k + lane % 4 * 2) * D + n + lane / 4];
                multiply_add((float(&)[4])out[n / 2], weights, values[0] | values[D] << 16, values[8 * D] | values[9 * D] << 16);
            }
        }
        __syncthreads();
    }
    write_rows(out, rows, O + head, row, sequence);
}
