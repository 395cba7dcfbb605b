// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "16-byte loads, A's tile transposed"
operation = "gemm"
idea = "sgemm_2d_tiles with loads and stores of four elements. A's tile is turned on its way into shared memory: what a thread needs of it for one k then lies side by side too."
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]

[launch]
block = [256]
grid = ["N // BN", "M // BM"]

[parameters]
BM = 128 # rows of C per block
BN = 128 # columns of C per block
BK = 8   # k per step

[[require]]
condition = "BM == 128 and BN == 128 and (BK == 8 or BK == 16)"
because = "{id} has 256 threads of 8x8 elements: BM and BN must be 128, BK 8 or 16"

[[require]]
condition = "M % BM == 0 and N % BN == 0 and K % BK == 0"
because = "{id} checks no bounds: M, N and K must be multiples of its tile's"
*/

extern "C" __global__ void __launch_bounds__(256)
    sgemm_float4(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C)
{
    __shared__ __align__(16) float As[BK][BM]; // (k, row): transposed
    __shared__ __align__(16) float Bs[BK][BN]; // (k, column)
    const int t = threadIdx.x;
    const int row = t / 16 * 8; // of this thread's elements in the tile
    const int column = t % 16 * 8;
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
            for (int i = 0; i < 8; i += 4) {
                *(float4 *)&a[i] = *(const float4 *)&As[k][row + i];
                *(float4 *)&b[i] = *(const float4 *)&Bs[k][column + i];
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
            float4 *c = (float4 *)(C + (size_t)(row + i) * N + column + j);
            float4 old = beta == 0 ? make_float4(0, 0, 0, 0) : *c;
            *c = make_float4(alpha * sum[i][j] + beta * old.x, alpha * sum[i][j + 1] + beta * old.y,
                             alpha * sum[i][j + 2] + beta * old.z, alpha * sum[i][j + 3] + beta * old.w);
        }
}
