// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
problem = "gemm"
rung = 612
shape_of = "few_rows"
title = "A few k, C written as a stream"
idea = "With a few k the product is all output: writing C is all the time there is. A warp holds all k of 128 columns of B in registers and goes down its rows, which are as many apart as make all of them begin alike: each lane writes four neighbours at once, and no LINE bytes of C are written in two parts, wherever rows start."
after = "few_rows"
change = "Nothing is summed up across threads: barriers fall."
bottleneck = "DRAM: what it takes of a stream of writes; below a few MB the launch."

[moves]
barriers = "falls"

[[launches]]
entry = "short_k"
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]
block = ["8 * LINE"]
grid = ["cdiv(N + LINE // 4 - 1, 128)", "cdiv(M, LINE // 4 * ROWS)"]

[constants]
DEPTH = "K" # which the source is compiled for

[parameters]
LINE = 32 # bytes at whose multiples a warp's part of a row begins: it has every LINE / 4th row
ROWS = 16 # of a warp

[candidates]
LINE = [32, 64, 128]
ROWS = [4, 8, 16, 32]

[[require]]
condition = "K <= 32"
because = "{id} keeps all k of B in registers, 32 at most"

[[require]]
condition = "LINE == 32 or LINE == 64 or LINE == 128"
because = "{id} has a warp for each element of a LINE of 32, 64 or 128 bytes"

[[require]]
condition = "cdiv(M, LINE // 4 * ROWS) <= 65535"
because = "{id} has 65535 groups of rows at most"
*/

#define WARPS (LINE / 4)
#define PITCH ((DEPTH + 3) / 4 * 4) // of A in shared memory

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    short_k(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C)
{
    // Coordinates: this warp's first row, and this lane's first column, which lies before the row where that does not begin
    // with a LINE.
    const int t = threadIdx.x;
    const int m0 = blockIdx.y * (WARPS * ROWS);
    const int m = m0 + t / 32;
    const int cut = ((size_t)C / 4 + (size_t)m * N) % WARPS;
    const int n = blockIdx.x * 128 + t % 32 * 4 - cut;

    // A's rows of this block, and this lane's columns of B.
    __shared__ __align__(16) float a_rows[WARPS * ROWS * PITCH];
    for (int i = t; i < WARPS * ROWS * PITCH; i += 32 * WARPS) {
        const bool exists = m0 + i / PITCH < M && i % PITCH < DEPTH;
        a_rows[i] = exists ? A[(size_t)(m0 + i / PITCH) * DEPTH + i % PITCH] : 0;
    }
    float b[DEPTH][4];
#pragma unroll
    for (int k = 0; k < DEPTH; ++k)
#pragma unroll
        for (int j = 0; j < 4; ++j)
            b[k][j] = (unsigned)(n + j) < (unsigned)N ? B[(size_t)k * N + n + j] : 0;
    __syncthreads();

    float *c = C + (size_t)m * N + n;
#pragma unroll 2
    for (int row = 0; row < ROWS && m + row * WARPS < M; ++row, c += (size_t)WARPS * N) {
        float sum[4] = {};
#pragma unroll
        for (int k = 0; k < DEPTH; k += 4) {
            float a[4];
            *(float4 *)a = *(const float4 *)&a_rows[(t / 32 + row * WARPS) * PITCH + k];
#pragma unroll
            for (int q = 0; q < 4 && k + q < DEPTH; ++q)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    sum[j] += a[q] * b[k + q][j];
        }
#pragma unroll
        for (int j = 0; j < 4; ++j)
            sum[j] *= alpha;
        if (n >= 0 && n + 3 < N) {
            if (beta != 0) {
                const float4 old = *(const float4 *)c;
                sum[0] += beta * old.x, sum[1] += beta * old.y, sum[2] += beta * old.z, sum[3] += beta * old.w;
            }
            *(float4 *)c = make_float4(sum[0], sum[1], sum[2], sum[3]);
        } else
#pragma unroll
            for (int j = 0; j < 4; ++j)
                if ((unsigned)(n + j) < (unsigned)N)
                    c[j] = beta == 0 ? sum[j] : sum[j] + beta * c[j];
    }
}
