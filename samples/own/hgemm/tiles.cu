// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Tiles from shared memory"
operation = "hgemm"
rung = 20
idea = "The block shares tiles of A and B; ldmatrix brings them to registers as mma wants them, B transposed on the way. Rows are padded by 16 bytes, so that eight of them lie in different banks."
after = "fragments"
arguments = ["M", "N", "K", "A", "B", "C"]

[moves]
global_load_sectors = "falls"
shared_load_bank_conflicts = "stays"

[launch]
block = [128]
grid = ["N // 64", "M // 64"]

[[require]]
condition = "M % 64 == 0 and N % 64 == 0 and K % 32 == 0"
because = "{id} checks no bounds: M and N must be multiples of 64, K of 32"
*/
#include <cuda_fp16.h>

#define BM 64
#define BN 64
#define BK 32
#define PAD 8 // halves

// Two tiles of 8x8 for each pair of registers; lane i gives the address of row i % 8 of tile i / 8.
static __device__ __forceinline__ void load_tiles(unsigned (&r)[4], const __half *row)
{
    const unsigned at = (unsigned)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}
static __device__ __forceinline__ void load_turned(unsigned (&r)[4], const __half *row)
{
    const unsigned at = (unsigned)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}
static __device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9},"
                 " {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

extern "C" __global__ void __launch_bounds__(128)
    tiles(int M, int N, int K, const __half *A, const __half *B, float *C)
{
    __shared__ __align__(16) __half As[BM][BK + PAD];
    __shared__ __align__(16) __half Bs[BK][BN + PAD];
    const int t = threadIdx.x;
    const int lane = t % 32;
    const int m = t / 64 * 32;      // of the warp, in the block's tile
    const int n = t / 32 % 2 * 32;
    A += (size_t)blockIdx.y * BM * K;
    B += (size_t)blockIdx.x * BN;
    C += (size_t)blockIdx.y * BM * N + (size_t)blockIdx.x * BN;

    float sum[2][4][4] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        for (int i = t; i < BM * BK / 8; i += 128) {
            const int row = i / (BK / 8), column = i % (BK / 8) * 8;
            *(uint4 *)&As[row][column] = *(const uint4 *)(A + (size_t)row * K + k0 + column);
        }
        for (int i = t; i < BK * BN / 8; i += 128) {
            const int row = i / (BN / 8), column = i % (BN / 8) * 8;
            *(uint4 *)&Bs[row][column] = *(const uint4 *)(B + (size_t)(k0 + row) * N + column);
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            unsigned a[2][4], b[2][4];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                load_tiles(a[i], &As[m + 16 * i + lane % 16][k + lane / 16 * 8]);
                load_turned(b[i], &Bs[k + lane % 16][n + 16 * i + lane / 16 * 8]);
            }
#pragma unroll
            for (int i = 0; i < 2; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    multiply(sum[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int row = m + 16 * i + lane / 4, column = n + 8 * j + lane % 4 * 2;
            __stcs((float2 *)&C[(size_t)row * N + column], make_float2(sum[i][j][0], sum[i][j][1]));
            __stcs((float2 *)&C[(size_t)(row + 8) * N + column], make_float2(sum[i][j][2], sum[i][j][3]));
        }
}
