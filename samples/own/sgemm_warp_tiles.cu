// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Warp tiles"
operation = "gemm"
idea = "sgemm_float4 with a level between block and thread: each warp has a 32x64 part of the tile, and its lanes lie so that they read few different words of shared memory at a time."
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]

[launch]
block = [256]
grid = ["N // BN", "M // BM"]

[parameters]
BM = 128 # rows of C per block
BN = 128 # columns of C per block
BK = 16  # k per step

[[require]]
condition = "BM == 128 and BN == 128 and (BK == 8 or BK == 16)"
because = "{id} has eight warps of 32x64 elements: BM and BN must be 128, BK 8 or 16"

[[require]]
condition = "M % BM == 0 and N % BN == 0 and K % BK == 0"
because = "{id} checks no bounds: M, N and K must be multiples of its tile's"
*/

extern "C" __global__ void __launch_bounds__(256)
    sgemm_warp_tiles(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C)
{
    __shared__ __align__(16) float As[BK][BM]; // (k, row): transposed
    __shared__ __align__(16) float Bs[BK][BN]; // (k, column)
    const int t = threadIdx.x;
    const int warp = t / 32;
    const int lane = t % 32;
    // Four lanes down and eight across. A lane has two groups of four rows, 16 apart, and two of four columns, 32 apart.
    const int row = warp / 2 * 32 + lane / 8 * 4;
    const int column = warp % 2 * 64 + lane % 8 * 4;
    A += (size_t)blockIdx.y * BM * K;
    B += (size_t)blockIdx.x * BN;
    C += (size_t)blockIdx.y * BM * N + (size_t)blockIdx.x * BN;

    float sum[8][8] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
#pragma unroll
        for (int i = t; i < BM * BK / 4; i += 256) {
            const int m = i / (BK / 4);
            const int k = i % (BK / 4) * 4;
            const float4 a = *(const float4 *)(A + (size_t)m * K + k0 + k);
            As[k + 0][m] = a.x;
            As[k + 1][m] = a.y;
            As[k + 2][m] = a.z;
            As[k + 3][m] = a.w;
        }
#pragma unroll
        for (int i = t; i < BK * BN / 4; i += 256)
            *(float4 *)&Bs[i / (BN / 4)][i % (BN / 4) * 4] =
                *(const float4 *)(B + (size_t)(k0 + i / (BN / 4)) * N + i % (BN / 4) * 4);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a[8], b[8];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                *(float4 *)&a[4 * i] = *(const float4 *)&As[k][row + 16 * i];
                *(float4 *)&b[4 * i] = *(const float4 *)&Bs[k][column + 32 * i];
            }
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j)
                    sum[i][j] += a[i] * b[j];
        }
        __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 8; j += 4) {
            float4 *c = (float4 *)(C + (size_t)(row + i / 4 * 16 + i % 4) * N + column + j / 4 * 32);
            float4 old = beta == 0 ? make_float4(0, 0, 0, 0) : *c;
            *c = make_float4(alpha * sum[i][j] + beta * old.x, alpha * sum[i][j + 1] + beta * old.y,
                             alpha * sum[i][j + 2] + beta * old.z, alpha * sum[i][j + 3] + beta * old.w);
        }
}
