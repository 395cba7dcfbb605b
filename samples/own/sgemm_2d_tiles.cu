// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Tiles in shared memory, 8x8 elements a thread"
operation = "gemm"
idea = "A block computes a tile of C from tiles of A and B in shared memory; each thread keeps a small tile of it in registers, so that a value loaded is used several times."
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

// The kernel, for any tile: how a library would hold it.
template <int TileM, int TileN, int TileK, int ThreadM, int ThreadN>
static __device__ __forceinline__ void multiply(int N, int K, float alpha, const float *A, const float *B, float beta,
                                                float *C)
{
    constexpr int threads = TileM / ThreadM * (TileN / ThreadN);
    __shared__ float As[TileM][TileK];
    __shared__ float Bs[TileK][TileN];
    const int t = threadIdx.x;
    const int row = t / (TileN / ThreadN) * ThreadM; // of this thread's elements in the tile
    const int column = t % (TileN / ThreadN) * ThreadN;
    A += (size_t)blockIdx.y * TileM * K;
    B += (size_t)blockIdx.x * TileN;
    C += (size_t)blockIdx.y * TileM * N + (size_t)blockIdx.x * TileN;

    float sum[ThreadM][ThreadN] = {};
    for (int k0 = 0; k0 < K; k0 += TileK) {
        for (int i = t; i < TileM * TileK; i += threads)
            As[i / TileK][i % TileK] = A[(size_t)(i / TileK) * K + k0 + i % TileK];
        for (int i = t; i < TileK * TileN; i += threads)
            Bs[i / TileN][i % TileN] = B[(size_t)(k0 + i / TileN) * N + i % TileN];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TileK; ++k) {
            float a[ThreadM], b[ThreadN];
#pragma unroll
            for (int i = 0; i < ThreadM; ++i)
                a[i] = As[row + i][k];
#pragma unroll
            for (int j = 0; j < ThreadN; ++j)
                b[j] = Bs[k][column + j];
#pragma unroll
            for (int i = 0; i < ThreadM; ++i)
#pragma unroll
                for (int j = 0; j < ThreadN; ++j)
                    sum[i][j] += a[i] * b[j];
        }
        __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < ThreadM; ++i)
#pragma unroll
        for (int j = 0; j < ThreadN; ++j) {
            float *c = C + (size_t)(row + i) * N + column + j;
            *c = beta == 0 ? alpha * sum[i][j] : alpha * sum[i][j] + beta * *c;
        }
}

extern "C" __global__ void __launch_bounds__(256)
    sgemm_2d_tiles(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C)
{
    multiply<BM, BN, BK, TM, TN>(N, K, alpha, A, B, beta, C);
}
