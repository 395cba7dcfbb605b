// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
problem = "gemm"
rung = 612
shape_of = "few_rows"
title = "A few k, C written as a stream"
dtypes = ["f32", "tf32"]
idea = "With a few k the product is all output: writing C is all the time there is. A warp, or a half or quarter of it where C is narrow, holds all k of its columns of B in registers and goes down its rows, which are as many apart as make all of them begin alike: no LINE bytes of C are written in two parts, wherever rows start."
after = "few_rows"
change = "Nothing is summed up across threads: barriers fall."
bottleneck = "DRAM: what it takes of a stream of writes; below a few MB the launch."

[moves]
barriers = "falls"

[[launches]]
entry = "short_k"
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]
block = ["8 * LINE"]
grid = ["ACROSS * cdiv(M, STEP * DOWN)"]
dynamic_shared_bytes = "STEP * DOWN * PITCH * 4"

[constants]
DEPTH = "K" # which the source is compiled for
PITCH = "cdiv(K, 4) * 4" # of A in shared memory
COLS = "WIDE if WIDE else 2 if K > 68 or M * N <= 14000 * sm_count else 3 if K > 52 else 4" # of C per lane: fewer where a block has few rows for its columns of B
LANES = "8 if N + LINE // 4 <= 8 * COLS + 1 else 16 if N + LINE // 4 <= 16 * COLS + 1 else 32" # that have a row
STEP = "LINE // 4 * 32 // LANES" # rows from one of a lane's to its next
ACROSS = "cdiv(N + LINE // 4 - 1, COLS * LANES)" # blocks of a row
RESIDENT = "max(1, 8192 // (LINE * (K * COLS + 40)))" # blocks that an SM holds
FIT = "RESIDENT * sm_count"
MOST = "max(1, min(ROWS if ROWS else 96, (57344 if 90 <= arch < 120 else 24576) // (RESIDENT * STEP * PITCH)))" # rows of a lane, of which an SM's shared memory holds A's
DOWN_1 = "min(MOST, cdiv(M, STEP * max(1, FIT // ACROSS)))" # with all blocks at once
DOWN_2 = "min(MOST, cdiv(M, STEP * max(1, 2 * FIT // ACROSS)))" # or in two waves, or three
DOWN_3 = "min(MOST, cdiv(M, STEP * max(1, 3 * FIT // ACROSS)))"
DOWN = "min((DOWN_1 + 4) * cdiv(ACROSS * cdiv(M, STEP * DOWN_1), FIT) * 128 + DOWN_1, (DOWN_2 + 4) * cdiv(ACROSS * cdiv(M, STEP * DOWN_2), FIT) * 128 + DOWN_2, (DOWN_3 + 4) * cdiv(ACROSS * cdiv(M, STEP * DOWN_3), FIT) * 128 + DOWN_3) % 128" # rows of a lane, for which the last wave is full; to begin takes as long as four
WAVES = "cdiv(ACROSS * cdiv(M, STEP * DOWN), FIT)"
CYCLES = "WAVES * DOWN * RESIDENT * K * COLS * LINE // 16" # of products, for the SM that has most,
WRITES = "WAVES * DOWN * RESIDENT * LINE" # rows of warps,
WAITS = "WAVES * K" # and what a lane reads of B before the first

[parameters]
LINE = 32 # bytes at whose multiples a lane's part of a row begins: a warp has every LINE / 4th row
ROWS = 0  # of a lane, at most; 0: as many as leave the last wave full
WIDE = 0  # columns of a lane; 0: as C and the registers that hold B have room for

[candidates]
LINE = [32, 64, 128]
ROWS = [0, 4, 8, 16]
WIDE = [0, 2, 3, 4]

[[require]]
condition = "K <= 104"
because = "{id} keeps all k of B in registers, 104 at most"

[[require]]
condition = "LINE == 32 or LINE == 64 or LINE == 128"
because = "{id} has a warp for each element of a LINE of 32, 64 or 128 bytes"

[[require]]
condition = "DEPTH * COLS <= 208 and ROWS >= 0 and ROWS < 128"
because = "{id} needs ROWS below 128 (0: as many as fit) and registers for K * WIDE values of B"

[[require]]
condition = "arch >= 80"
because = "{id} copies with cp.async, which needs compute capability 8.0"
*/

#include "cp_async.cuh"

#define WARPS (LINE / 4)

// C's rows from `a_row` on, STEP apart: as many as are computed at once, so that one waits less for A.
template <int ROWS_AT_ONCE>
static __device__ __forceinline__ void compute_rows(const float *a_row, const float (&b)[DEPTH][COLS], float *c, int n, int N,
                                                    float alpha, float beta)
{
    float sum[ROWS_AT_ONCE][COLS] = {};
#pragma unroll
    for (int k = 0; k < DEPTH; k += 4)
#pragma unroll
        for (int i = 0; i < ROWS_AT_ONCE; ++i) {
            float a[4];
            *(float4 *)a = *(const float4 *)&a_row[i * STEP * PITCH + k];
#pragma unroll
            for (int q = 0; q < 4 && k + q < DEPTH; ++q)
#pragma unroll
                for (int j = 0; j < COLS; ++j)
                    sum[i][j] += a[q] * b[k + q][j];
        }
#pragma unroll
    for (int i = 0; i < ROWS_AT_ONCE; ++i, c += (size_t)STEP * N)
#pragma unroll
        for (int j = 0; j < COLS; ++j)
            if ((unsigned)(n + j * LANES) < (unsigned)N)
                c[j * LANES] = beta == 0 ? alpha * sum[i][j] : alpha * sum[i][j] + beta * c[j * LANES];
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, RESIDENT)
    short_k(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C)
{
    // Coordinates: this lane's first row, and the first of its columns, which are LANES apart; the first lane's lies
    // before the row where that does not begin with a LINE. The rows of a warp's parts are WARPS apart, so that they begin
    // alike too.
    const int t = threadIdx.x;
    const int m0 = blockIdx.x / ACROSS * (STEP * DOWN);
    const int row0 = t / 32 + t % 32 / LANES * WARPS;
    const int m = m0 + row0;
    const int cut = ((size_t)C / 4 + (size_t)m * N) % WARPS;
    const int n = blockIdx.x % ACROSS * (COLS * LANES) + t % LANES - cut;

    // Copy A's rows of this block, and load this lane's columns of B meanwhile.
    extern __shared__ __align__(16) float a_rows[];
#pragma unroll 4
    for (int i = t; i < STEP * DOWN * PITCH; i += 32 * WARPS) {
        const int row = m0 + i / PITCH;
        const bool exists = row < M && i % PITCH < DEPTH;
        copy<4>(a_rows + i, exists ? A + (size_t)row * DEPTH + i % PITCH : A, exists);
    }
    float b[DEPTH][COLS];
#pragma unroll
    for (int k = 0; k < DEPTH; ++k)
#pragma unroll
        for (int j = 0; j < COLS; ++j)
            b[k][j] = (unsigned)(n + j * LANES) < (unsigned)N ? B[(size_t)k * N + n + j * LANES] : 0;
    wait_for_copies();
    __syncthreads();

    const float *a_row = a_rows + row0 * PITCH;
    float *c = C + (size_t)m * N + n;
    const int end = min(M, m0 + STEP * DOWN);
    int row = m;
#pragma unroll 1
    for (; row + 3 * STEP < end; row += 4 * STEP, a_row += 4 * STEP * PITCH, c += (size_t)4 * STEP * N)
        compute_rows<4>(a_row, b, c, n, N, alpha, beta);
#pragma unroll 1
    for (; row < end; row += STEP, a_row += STEP * PITCH, c += (size_t)STEP * N)
        compute_rows<1>(a_row, b, c, n, N, alpha, beta);
}
