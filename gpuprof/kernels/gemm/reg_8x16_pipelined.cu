// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "8x16 outputs, registers prefetched too"
problem = "gemm"
rung = 530
idea = "While the FMAs of one k run, the operands of the next k are already on their way from shared memory into a second set of registers."
after = "reg_8x16_async"
change = "The FMAs no longer wait for shared memory, not even across the barrier: the last k of a tile prefetches from the next tile. The time falls while shared_load_wavefronts and barriers stay, for about ten more registers."
bottleneck = "Shared-memory loads, six for each 128 FMAs, and the last wave of blocks, which rarely fills the GPU."
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]

[moves]
shared_load_wavefronts = "stays"
barriers = "stays"

[launch]
block = [256]
grid = ["cdiv(N, BN)", "cdiv(M, BM)"]
dynamic_shared_bytes = "2 * BK * (BM + 4 + BN) * real_bytes"

[constants]
BM = 128 # rows of C per block
BN = 256 # columns of C per block
WIDE = "K % 4 == 0 and N % 4 == 0" # copies of 16 bytes: rows start at multiples of them; else element by element

[parameters]
BK = 16
UNROLL = 4

[candidates]
BK = [8, 16, 32]
UNROLL = [2, 4, 8, 16]

[[require]]
condition = "(BK == 8 or BK == 16 or BK == 32) and UNROLL % 2 == 0 and UNROLL > 0 and BK % UNROLL == 0"
because = "reg_8x16_pipelined needs BK 8, 16 or 32, and an even UNROLL that divides it"

[[require]]
condition = "arch >= 80"
because = "reg_8x16_pipelined copies with cp.async, which needs compute capability 8.0"
*/

#define THREADS BLOCK_X
#define TM 8             // rows of C per thread
#define TN 16            // columns of C per thread
#define LANES_M 8        // a warp's lanes: 8 along M by 4 along N
#define LANES_N 4
#define WARPS_N (BN / (LANES_N * TN))
#define A_PITCH (BM + 4) // padded: the transposing stores below meet 2-way bank conflicts instead of 8-way ones
#define A_ROWS (THREADS / (BK / 4))
#define B_ROWS (THREADS / (BN / 4))
#define A_STAGE (BK * A_PITCH)
#define B_STAGE (BK * BN)

#include "cp_async.cuh"
#include "write_tile.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    reg_8x16_pipelined(int M, int N, int K, real alpha, const real *A, const real *B, real beta, real *C)
{
    // Coordinates. A lane's rows and columns come in groups of four neighbours; the groups of a warp interleave.
    const int t = threadIdx.x;
    const int lane = t % 32;
    const int warp = t / 32;
    const int lane_n = lane / 2 % LANES_N;
    const int lane_m = lane % 2 + lane / 8 * 2;
    const int m_thread = warp / WARPS_N * LANES_M * TM + lane_m * 4; // + 4 * LANES_M per group of rows
    const int n_thread = warp % WARPS_N * LANES_N * TN + lane_n * 4; // + 4 * LANES_N per group of columns
    const int m0 = blockIdx.y * BM;
    const int n0 = blockIdx.x * BN;

    // Shared memory, two stages: one is computed from while the other fills.
    extern __shared__ __align__(16) float shared[];
    float *Bs = shared;               // (stage, k, column of C)
    float *As = shared + 2 * B_STAGE; // (stage, k, row of C): A transposed

    // Pointers. Rows and columns beyond the matrix are replaced by the last ones: what they contribute is never stored.
    // Beyond K the tiles hold zeros: the first tile takes the odd K % BK, so that no later one needs a check.
    const int tiles = (K + BK - 1) / BK;
    const int k_first = K - (tiles - 1) * BK;
    const int a_k = t % (BK / 4) * 4; // this thread loads four k of rows a_m, a_m + A_ROWS, … of A's tile
    const int a_m = t / (BK / 4);
    const int b_n = t % (BN / 4) * 4; // and four columns of rows b_k, b_k + B_ROWS, … of B's tile
    const int b_k = t / (BN / 4);
    const float *a_source[BM / A_ROWS];
#pragma unroll
    for (int i = 0; i < BM / A_ROWS; ++i)
        a_source[i] = A + (size_t)min(m0 + a_m + i * A_ROWS, M - 1) * K + a_k;
    const float *b_source = B + (size_t)b_k * N + min(n0 + b_n, max(N - 4, 0));

    float4 a_next[BM / A_ROWS]; // A passes through registers, to be transposed on its way
    const auto store_a = [&](int stage) {
        float *target = As + stage * A_STAGE + a_k * A_PITCH + a_m;
#pragma unroll
        for (int i = 0; i < BM / A_ROWS; ++i) {
            target[i * A_ROWS + 0 * A_PITCH] = a_next[i].x;
            target[i * A_ROWS + 1 * A_PITCH] = a_next[i].y;
            target[i * A_ROWS + 2 * A_PITCH] = a_next[i].z;
            target[i * A_ROWS + 3 * A_PITCH] = a_next[i].w;
        }
    };
    // The tile of k0 .. k0 + count - 1, element by element, for rows that 16-byte copies cannot read.
    const auto copy_elements = [&](int stage, int k0, int count) {
#pragma unroll 1
        for (int i = t; i < BM * BK; i += THREADS) {
            const int k = i % BK;
            const int m = i / BK;
            const bool exists = m0 + m < M && k < count;
            copy<4>(As + stage * A_STAGE + k * A_PITCH + m, exists ? A + (size_t)(m0 + m) * K + k0 + k : A, exists);
        }
#pragma unroll 1
        for (int i = t; i < BN * BK; i += THREADS) {
            const int n = i % BN;
            const int k = i / BN;
            const bool exists = n0 + n < N && k < count;
            copy<4>(Bs + stage * B_STAGE + k * BN + n, exists ? B + (size_t)(k0 + k) * N + n0 + n : B, exists);
        }
    };

    // Load the first tile, then the operands of its first k.
    if (WIDE) {
#pragma unroll
        for (int i = 0; i < BM / A_ROWS; ++i) {
            a_next[i] = a_k < k_first ? *(const float4 *)a_source[i] : make_float4(0, 0, 0, 0);
            a_source[i] += k_first;
        }
        store_a(0);
#pragma unroll
        for (int k = 0; k < BK; k += B_ROWS) {
            const bool exists = b_k + k < k_first;
            copy<16>(Bs + (b_k + k) * BN + b_n, exists ? b_source + (size_t)k * N : B, exists);
        }
        b_source += (size_t)k_first * N;
    } else
        copy_elements(0, 0, k_first);
    wait_for_copies();
    __syncthreads();

    float sum[TM][TN] = {};
    float a[2][TM]; // operands of this k and of the next
    float b[2][TN];
    const auto load_operands = [&](int set, const float *a_row, const float *b_row) {
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            *(float4 *)&b[set][j] = *(const float4 *)&b_row[j * LANES_N];
#pragma unroll
        for (int i = 0; i < TM; i += 4)
            *(float4 *)&a[set][i] = *(const float4 *)&a_row[i * LANES_M];
    };
    load_operands(0, As + m_thread, Bs + n_thread);

#pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
        // Load: start the next tile's copies; they have this whole tile's FMAs to arrive.
        const int stage = tile % 2;
        const bool more = tile + 1 < tiles;
        if (more) {
            if (WIDE) {
#pragma unroll
                for (int i = 0; i < BM / A_ROWS; ++i) {
                    a_next[i] = *(const float4 *)a_source[i];
                    a_source[i] += BK;
                }
#pragma unroll
                for (int k = 0; k < BK; k += B_ROWS)
                    copy<16>(Bs + (stage ^ 1) * B_STAGE + (b_k + k) * BN + b_n, b_source + (size_t)k * N);
                b_source += (size_t)BK * N;
            } else
                copy_elements(stage ^ 1, k_first + tile * BK, BK);
        }

        // Compute, UNROLL values of k at a time.
        const float *a_row = As + stage * A_STAGE + m_thread;
        const float *b_row = Bs + stage * B_STAGE + n_thread;
#pragma unroll 1
        for (int k0 = 0; k0 < BK; k0 += UNROLL) {
            if (k0 == BK - UNROLL && more && WIDE)
                store_a(stage ^ 1);
            const float *a_after = a_row + UNROLL * A_PITCH;
            const float *b_after = b_row + UNROLL * BN;
#pragma unroll
            for (int k = 0; k < UNROLL; ++k) {
                // Sync before the last k of the tile: its operands are in registers, so the stage may be refilled.
                if (k == UNROLL - 1 && k0 == BK - UNROLL) {
                    wait_for_copies();
                    __syncthreads();
                    const int after = more ? stage ^ 1 : stage; // after the last tile any operands will do
                    a_after = As + after * A_STAGE + m_thread;
                    b_after = Bs + after * B_STAGE + n_thread;
                }
                if (k + 1 < UNROLL)
                    load_operands((k + 1) % 2, a_row + (k + 1) * A_PITCH, b_row + (k + 1) * BN);
                else
                    load_operands((k + 1) % 2, a_after, b_after);
                // Walk the 8x16 products like a snake: two neighbours always share an operand, which the register
                // file then need not deliver twice.
#pragma unroll
                for (int j = 0; j < TN; ++j)
#pragma unroll
                    for (int i = 0; i < TM; ++i) {
                        const int i_snake = j % 2 ? TM - 1 - i : i;
                        sum[i_snake][j] += a[k % 2][i_snake] * b[k % 2][j];
                    }
            }
            a_row = a_after;
            b_row = b_after;
        }
    }

    // Write back.
    write_tile<WIDE>(sum, m0 + m_thread, n0 + n_thread, M, N, alpha, beta, C);
}
