// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Tiles in shared memory, 8x8 elements a thread"
operation = "gemm"
idea = "A block computes a tile of C from tiles of A and B in shared memory; each thread keeps a small tile of it in registers, so that a value loaded is used several times."
entry = "sgemm<BM, BN, BK, TM, TN>"
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]

[launch]
block = [256]
grid = ["N // BN", "M // BM"]

[parameters]
BM = 128 # rows of C per block
BN = 128 # columns of C per block
BK = 8   # k per step
TM = 8   # rows of C per thread
TN = 8   # columns of C per thread

[[require]]
condition = "BM * BN == 256 * TM * TN and BM % TM == 0 and BN % TN == 0"
because = "{id} runs 256 threads, each with TM x TN elements of a BM x BN tile"

[[require]]
condition = "M % BM == 0 and N % BN == 0 and K % BK == 0"
because = "{id} checks no bounds: M, N and K must be multiples of its tile's"
*/

template <int BM, int BN, int BK, int TM, int TN>
__global__ void __launch_bounds__(BM / TM * (BN / TN))
    sgemm(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C)
{
    constexpr int threads = BM / TM * (BN / TN);
    __shared__ float As[BM][BK];
    __shared__ float Bs[BK][BN];
    const int t = threadIdx.x;
    const int row = t / (BN / TN) * TM; // of this thread's elements in the tile
    const int column = t % (BN / TN) * TN;
    A += (size_t)blockIdx.y * BM * K;
    B += (size_t)blockIdx.x * BN;
    C += (size_t)blockIdx.y * BM * N + (size_t)blockIdx.x * BN;

    float sum[TM][TN] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        for (int i = t; i < BM * BK; i += threads)
            As[i / BK][i % BK] = A[(size_t)(i / BK) * K + k0 + i % BK];
        for (int i = t; i < BK * BN; i += threads)
            Bs[i / BN][i % BN] = B[(size_t)(k0 + i / BN) * N + i % BN];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a[TM], b[TN];
#pragma unroll
            for (int i = 0; i < TM; ++i)
                a[i] = As[row + i][k];
#pragma unroll
            for (int j = 0; j < TN; ++j)
                b[j] = Bs[k][column + j];
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j)
                    sum[i][j] += a[i] * b[j];
        }
        __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j) {
            float *c = C + (size_t)(row + i) * N + column + j;
            *c = beta == 0 ? alpha * sum[i][j] : alpha * sum[i][j] + beta * *c;
        }
}
