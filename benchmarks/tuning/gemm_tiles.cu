// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Tiles in shared memory and registers, of any shape"
operation = "gemm"
idea = "A block computes a tile of C, each thread a smaller one in registers: everything about the tiles is a parameter."
dtypes = ["f32"]

[parameters]
BM = 64    # rows of C per block
BN = 64    # columns of C per block
BK = 16    # k per tile
TM = 4     # rows of C per thread
TN = 4     # columns of C per thread
PAD = 4    # words that a row of A's tile is longer by
SPLIT = 0  # 1: a thread's columns come in groups of four, far apart; 0: all in one piece
UNROLL = 0 # steps of k that are unrolled; 0 for all of a tile

[candidates]
BM = [32, 64, 128, 256]
BN = [32, 64, 128, 256]
BK = [8, 16, 32]
TM = [4, 8, 16]
TN = [4, 8, 16]
PAD = [0, 4]
SPLIT = [0, 1]
UNROLL = [0, 4]

[[launches]]
entry = "gemm_tiles"
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]
block = ["BN // TN", "BM // TM"]
grid = ["cdiv(N, BN)", "cdiv(M, BM)"]

[[require]]
condition = "M % BM == 0 and N % BN == 0 and K % BK == 0"
because = "{id} takes whole tiles only"

[[require]]
condition = "64 <= BM * BN // (TM * TN) <= 512"
because = "{id} has 64 to 512 threads a block"

[[require]]
condition = "BM * BK % (4 * (BM * BN // (TM * TN))) == 0 and BN * BK % (4 * (BM * BN // (TM * TN))) == 0"
because = "{id} loads tiles with whole rows of 16-byte words by all threads"

[[require]]
condition = "TM * TN <= 128"
because = "{id} keeps TM x TN sums in registers, at most 128"

[[require]]
condition = "SPLIT == 0 or TN > 4"
because = "{id} has nothing to split in four columns"
*/

#define THREADS (BM * BN / (TM * TN))
#define UNROLLED (UNROLL ? UNROLL : BK)

extern "C" __global__ void __launch_bounds__(THREADS) gemm_tiles(int M, int N, int K, real alpha, const real *A,
                                                                 const real *B, real beta, real *C)
{
    // Coordinates: this thread's part of the block's tile.
    const int t = threadIdx.y * (BN / TN) + threadIdx.x;
    const int m_own = threadIdx.y * TM;
    const int m0 = blockIdx.y * BM, n0 = blockIdx.x * BN;
    __shared__ __align__(16) real As[BK][BM + PAD]; // (k, row of C)
    __shared__ __align__(16) real Bs[BK][BN];       // (k, column of C)

    real sum[TM][TN] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        // Load; A's tile is transposed on its way.
#pragma unroll
        for (int word = t; word < BM * BK / 4; word += THREADS) {
            const int m = word / (BK / 4), k = word % (BK / 4) * 4;
            const float4 a = *(const float4 *)(A + (size_t)(m0 + m) * K + k0 + k);
            As[k + 0][m] = a.x;
            As[k + 1][m] = a.y;
            As[k + 2][m] = a.z;
            As[k + 3][m] = a.w;
        }
#pragma unroll
        for (int word = t; word < BN * BK / 4; word += THREADS) {
            const int k = word / (BN / 4), n = word % (BN / 4) * 4;
            *(float4 *)&Bs[k][n] = *(const float4 *)(B + (size_t)(k0 + k) * N + n0 + n);
        }
        __syncthreads();

        // Multiply.
#pragma unroll UNROLLED
        for (int k = 0; k < BK; ++k) {
            real a[TM], b[TN];
#pragma unroll
            for (int m = 0; m < TM; ++m)
                a[m] = As[k][m_own + m];
#pragma unroll
            for (int n = 0; n < TN; n += 4) {
                const int column = SPLIT ? n / 4 * (4 * BN / TN) + threadIdx.x * 4 : threadIdx.x * TN + n;
                const float4 four = *(const float4 *)&Bs[k][column];
                b[n + 0] = four.x;
                b[n + 1] = four.y;
                b[n + 2] = four.z;
                b[n + 3] = four.w;
            }
#pragma unroll
            for (int m = 0; m < TM; ++m)
#pragma unroll
                for (int n = 0; n < TN; ++n)
                    sum[m][n] += a[m] * b[n];
        }
        __syncthreads();
    }

    // Write back.
#pragma unroll
    for (int m = 0; m < TM; ++m)
#pragma unroll
        for (int n = 0; n < TN; ++n) {
            const int column = SPLIT ? n / 4 * (4 * BN / TN) + threadIdx.x * 4 + n % 4 : threadIdx.x * TN + n;
            real *c = C + (size_t)(m0 + m_own + m) * N + n0 + column;
            *c = beta == 0 ? alpha * sum[m][n] : alpha * sum[m][n] + beta * *c;
        }
}
