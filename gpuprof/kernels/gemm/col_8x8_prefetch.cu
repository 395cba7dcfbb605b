// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Register prefetch of the next tile"
problem = "gemm"
rung = 400
study = "D"
aliases = ["mysgemm_v10"]
idea = "Global loads of the next tiles are issued before the current ones are computed, and land in registers meanwhile."
after = "col_8x8_warp"
change = "The load moves ahead of the compute, which is to hide its latency: global_load_requests, shared_load_wavefronts and barriers stay."
bottleneck = "Two barriers per step: all warps wait for the slowest before and after each tile is stored. On an H200 the step does not pay: it is slower than col_8x8_warp, whose second block on each SM has hidden the loads already."
reference = "Study D, mysgemm_v10"
layout = "col"
dtypes = ["f32"]
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]

[moves]
global_load_requests = "stays"
shared_load_wavefronts = "stays"
barriers = "stays"

[launch]
block = [256]
grid = ["cdiv(M, BM)", "cdiv(N, BN)"]

[constants]
BM = 128 # rows of the C tile
BN = 128 # columns of the C tile

[parameters]
BK = 8 # columns of the tile of A, rows of the tile of B

[candidates]
BK = [8, 16]

[[require]]
condition = "BK == 8 or BK == 16"
because = "col_8x8_prefetch needs BK 8 or 16"
*/

constexpr int K_STEP = 8;    // columns of A and rows of B that the 256 threads load at once, a float4 of each
constexpr int TM = 8;        // rows per thread
constexpr int TN = 8;        // columns per thread
constexpr int PAD = 4;       // elements between rows of Bs: keeps float4 alignment, and the scalar stores meet 32 banks
constexpr int ROW_STEP = 32; // from a thread's first group of four rows to its second
constexpr int COL_STEP = 16; // from its first group of four columns to its second

// Four consecutive elements in global memory, the first `valid` of which are inside the matrix; zeros for the others.
// `aligned`: the leading dimension is a multiple of 4, hence every group of four is wholly inside or wholly outside and
// starts at a multiple of 16 bytes, as device allocations do.
__device__ __forceinline__ float4 load4(const real *from, int valid, bool aligned)
{
    float4 values = {0, 0, 0, 0};
    if (aligned && valid > 0)
        values = *reinterpret_cast<const float4 *>(from);
    const int single = aligned ? 0 : valid; // elements to load one by one
    if (single > 0)
        values.x = from[0];
    if (single > 1)
        values.y = from[1];
    if (single > 2)
        values.z = from[2];
    if (single > 3)
        values.w = from[3];
    return values;
}

// Four consecutive elements of C become alpha * sum + beta * C; with beta = 0 the old content is never read.
__device__ __forceinline__ void update4(real *c, const real *sum, int valid, bool aligned, real alpha, real beta)
{
    if (aligned) {
        if (valid > 0) {
            float4 result = {alpha * sum[0], alpha * sum[1], alpha * sum[2], alpha * sum[3]};
            if (beta != 0) {
                const float4 old = *reinterpret_cast<const float4 *>(c);
                result.x += beta * old.x;
                result.y += beta * old.y;
                result.z += beta * old.z;
                result.w += beta * old.w;
            }
            *reinterpret_cast<float4 *>(c) = result;
        }
    } else {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            if (i < valid)
                c[i] = beta == 0 ? alpha * sum[i] : alpha * sum[i] + beta * c[i];
    }
}

// Four consecutive elements of shared memory, at a multiple of 16 bytes, into registers with one load.
__device__ __forceinline__ void read4(real *to, const real *from)
{
    const float4 values = *reinterpret_cast<const float4 *>(from);
    to[0] = values.x;
    to[1] = values.y;
    to[2] = values.z;
    to[3] = values.w;
}

extern "C" __global__ void __launch_bounds__(256, 2)
    col_8x8_prefetch(int M, int N, int K, real alpha, const real *A, const real *B, real beta, real *C)
{
    // Coordinates: this thread computes rows i + x and i + ROW_STEP + x of columns j + y and j + COL_STEP + y of the
    // C tile, for x and y = 0 .. 3: in groups of four, so that the float4s of neighbouring lanes lie side by side.
    // A warp owns 64x32 of the C tile: 8 lanes along rows, 4 along columns. Lane bits 0, 2 and 3 select the row and
    // bits 1 and 4 the column: lanes that differ in bit 1 share their float4 of A, lanes that differ in bit 0 their
    // float4 of B. With such pairs a half-warp's 16-byte loads take one wavefront, without them two.
    const int t = threadIdx.x;                                // 0 .. 255
    const int warp = t >> 5;                                  // 0 .. 7
    const int lane = t & 31;                                  // 0 .. 31
    const int lane_i = (lane & 1) | ((lane >> 1) & 6);        // 0 .. 7
    const int lane_j = ((lane >> 1) & 1) | ((lane >> 3) & 2); // 0 .. 3
    const int i = (warp & 1) * 64 + lane_i * 4;               // first row, 0 .. BM-ROW_STEP-4
    const int j = (warp >> 1) * 32 + lane_j * 4;              // first column, 0 .. BN-COL_STEP-4
    const bool m_aligned = M % 4 == 0;                        // columns of A and C start at multiples of 16 bytes
    const bool k_aligned = K % 4 == 0;                        // columns of B do

    // It loads four rows of one column of each tile; two lanes together read one whole sector of B.
    const int a_i = (t & 31) * 4; // 0 .. BM-4
    const int a_k = t >> 5;       // 0 .. K_STEP-1
    const int b_k = (t & 1) * 4;  // 0 .. K_STEP-4
    const int b_j = t >> 1;       // 0 .. BN-1

    // Shared memory. Bs is transposed on its way in, so that a thread reads four columns as one float4.
    __shared__ __align__(16) real As[BK][BM];       // (k, row of C)
    __shared__ __align__(16) real Bs[BK][BN + PAD]; // (k, column of C)

    // Pointers: element (i, j) of A, B, C is at i + j * (M, K, M).
    const int a_row = blockIdx.x * BM + a_i; // 0 .. M-1
    const int b_col = blockIdx.y * BN + b_j; // 0 .. N-1
    const real *a = A + a_row + (size_t)a_k * M;
    const real *b = B + b_k + (size_t)b_col * K;
    int a_left = K - a_k;                 // columns of A from this thread's on
    int b_left = b_col < N ? K - b_k : 0; // rows of B from this thread's on

    real sum[TN][TM] = {}; // (column, row)

    // Load the first tiles into registers; zeros beyond the matrix.
    float4 a4[BK / K_STEP];
    float4 b4[BK / K_STEP];
#pragma unroll
    for (int s = 0; s < BK / K_STEP; ++s) {
        a4[s] = load4(a + (size_t)s * K_STEP * M, a_left > s * K_STEP ? M - a_row : 0, m_aligned);
        b4[s] = load4(b + s * K_STEP, b_left - s * K_STEP, k_aligned);
    }
    a += (size_t)BK * M;
    b += BK;
    a_left -= BK;
    b_left -= BK;
    for (int k0 = 0; k0 < K; k0 += BK) {
        // Move the tiles from registers to shared memory.
#pragma unroll
        for (int s = 0; s < BK / K_STEP; ++s) {
            *reinterpret_cast<float4 *>(&As[s * K_STEP + a_k][a_i]) = a4[s];
            Bs[s * K_STEP + b_k][b_j] = b4[s].x;
            Bs[s * K_STEP + b_k + 1][b_j] = b4[s].y;
            Bs[s * K_STEP + b_k + 2][b_j] = b4[s].z;
            Bs[s * K_STEP + b_k + 3][b_j] = b4[s].w;
        }
        __syncthreads();

        // Load the next tiles, if any, into registers while this one is computed.
        if (k0 + BK < K) {
#pragma unroll
            for (int s = 0; s < BK / K_STEP; ++s) {
                a4[s] = load4(a + (size_t)s * K_STEP * M, a_left > s * K_STEP ? M - a_row : 0, m_aligned);
                b4[s] = load4(b + s * K_STEP, b_left - s * K_STEP, k_aligned);
            }
        }
        a += (size_t)BK * M;
        b += BK;
        a_left -= BK;
        b_left -= BK;

        // Compute: 64 FMAs from four shared loads.
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            real a_reg[TM];
            real b_reg[TN];
            read4(a_reg, &As[k][i]);
            read4(a_reg + 4, &As[k][i + ROW_STEP]);
            read4(b_reg, &Bs[k][j]);
            read4(b_reg + 4, &Bs[k][j + COL_STEP]);
#pragma unroll
            for (int y = 0; y < TN; ++y)
#pragma unroll
                for (int x = 0; x < TM; ++x)
                    sum[y][x] += a_reg[x] * b_reg[y];
        }
        __syncthreads();
    }

    // Write back, column by column.
    const int row = blockIdx.x * BM + i; // 0 .. M-1
    const int col = blockIdx.y * BN + j; // 0 .. N-1
#pragma unroll
    for (int y = 0; y < TN; ++y) {
        const int col_y = col + (y < 4 ? y : COL_STEP + y - 4);
        if (col_y >= N)
            continue;
        real *c = C + row + (size_t)col_y * M;
        update4(c, sum[y], M - row, m_aligned, alpha, beta);
        update4(c + ROW_STEP, sum[y] + 4, M - row - ROW_STEP, m_aligned, alpha, beta);
    }
}
