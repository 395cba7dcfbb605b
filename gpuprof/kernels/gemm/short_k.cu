// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
problem = "gemm"
rung = 612
shape_of = "few_rows"
title = "A few k, C written as a stream"
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
grid = ["cdiv(N + LINE // 4 - 1, COLS * LANES) * cdiv(M, STEP * DOWN)"]

[constants]
DEPTH = "K" # which the source is compiled for
COLS = "4 if K <= 32 else 2" # of C per lane
LANES = "ACROSS if ACROSS else 8 if N + LINE // 4 <= 8 * COLS + 1 else 16 if N + LINE // 4 <= 16 * COLS + 1 else 32" # that have a row
STEP = "LINE // 4 * 32 // LANES" # rows from one of a lane's to its next
DOWN = "min(ROWS if ROWS else cdiv(M, STEP * max(1, max(1, 256 // (K * COLS + 40)) * sm_count // cdiv(N + LINE // 4 - 1, COLS * LANES))), 16, 12288 // (STEP * (K + 3)))" # rows of a lane, those of A in 48 KiB

[parameters]
LINE = 32  # bytes at whose multiples a lane's part of a row begins: a warp has every LINE / 4th row
ROWS = 0   # of a lane; 0: 16, or as many as leave no more blocks than run at once
ACROSS = 0 # lanes that have a row, COLS columns each; 0: as C's width needs them

[candidates]
LINE = [32, 64, 128]
ROWS = [0, 1, 2, 4, 8, 16]
ACROSS = [0, 8, 16, 32]

[[require]]
condition = "K <= 64"
because = "{id} keeps all k of B in registers, 64 at most"

[[require]]
condition = "LINE == 32 or LINE == 64 or LINE == 128"
because = "{id} has a warp for each element of a LINE of 32, 64 or 128 bytes"

[[require]]
condition = "ACROSS == 0 or ACROSS == 8 or ACROSS == 16 or ACROSS == 32"
because = "{id} has 8, 16 or 32 lanes ACROSS a row"
*/

#define WARPS (LINE / 4)
#define PITCH ((DEPTH + 3) / 4 * 4) // of A in shared memory

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    short_k(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C)
{
    // Coordinates: this lane's first row, and the first of its columns, which are LANES apart; the first lane's lies
    // before the row where that does not begin with a LINE. The rows of a warp's parts are WARPS apart, so that they begin
    // alike too.
    const int t = threadIdx.x;
    const int across = (N + WARPS + COLS * LANES - 2) / (COLS * LANES); // blocks
    const int m0 = blockIdx.x / across * (STEP * DOWN);
    const int row0 = t / 32 + t % 32 / LANES * WARPS;
    const int m = m0 + row0;
    const int cut = ((size_t)C / 4 + (size_t)m * N) % WARPS;
    const int n = blockIdx.x % across * (COLS * LANES) + t % LANES - cut;

    // A's rows of this block, and this lane's columns of B.
    __shared__ __align__(16) float a_rows[STEP * DOWN * PITCH];
    for (int i = t; i < STEP * DOWN * PITCH; i += 32 * WARPS) {
        const bool exists = m0 + i / PITCH < M && i % PITCH < DEPTH;
        a_rows[i] = exists ? A[(size_t)(m0 + i / PITCH) * DEPTH + i % PITCH] : 0;
    }
    float b[DEPTH][COLS];
#pragma unroll
    for (int k = 0; k < DEPTH; ++k)
#pragma unroll
        for (int j = 0; j < COLS; ++j)
            b[k][j] = (unsigned)(n + j * LANES) < (unsigned)N ? B[(size_t)k * N + n + j * LANES] : 0;
    __syncthreads();

    float *c = C + (size_t)m * N + n;
#pragma unroll 2
    for (int row = 0; row < DOWN && m + row * STEP < M; ++row, c += (size_t)STEP * N) {
        float sum[COLS] = {};
#pragma unroll
        for (int k = 0; k < DEPTH; k += 4) {
            float a[4];
            *(float4 *)a = *(const float4 *)&a_rows[(row0 + row * STEP) * PITCH + k];
#pragma unroll
            for (int q = 0; q < 4 && k + q < DEPTH; ++q)
#pragma unroll
                for (int j = 0; j < COLS; ++j)
                    sum[j] += a[q] * b[k + q][j];
        }
#pragma unroll
        for (int j = 0; j < COLS; ++j)
            if ((unsigned)(n + j * LANES) < (unsigned)N)
                c[j * LANES] = beta == 0 ? alpha * sum[j] : alpha * sum[j] + beta * c[j * LANES];
    }
}
