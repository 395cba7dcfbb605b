// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Four warps, wmma from shared memory, alpha in the fragments"
operation = "product_f16_f16_f32"
operation_title = "C = A B, f16 and f16, summed in f32"
dimensions = ["M", "N", "K"]
default_sizes = "32x48x64"
arguments = ["M", "N", "K", "A", "B", "C"]

[arrays.A]
shape = ["M", "K"]
dtype = "f16"

[arrays.B]
shape = ["K", "N"]
dtype = "f16"

[arrays.C]
shape = ["M", "N"]
dtype = "f32"
role = "out"

[inputs]
A = "integers(-4, 5)"
B = "integers(-4, 5)"

[work]
flops = "2 * M * N * K"
bytes = "M * K + K * N + M * N"

[check]
C = { value = "A @ B", equal = true }

[launch]
block = [128]
grid = ["N // 16", "M // 32"]
*/
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda::wmma;

__global__ void wmma_shared(int M, int N, int K, const half *A, const half *B, float *C)
{
    constexpr int skew = 8;
    __shared__ half a_tile[32][32 + skew], b_tile[32][16 + skew];
    __shared__ float halves[2][16][16];
    const int warp = threadIdx.x / 32, row = blockIdx.y * 32, column = blockIdx.x * 16;
    fragment<matrix_a, 16, 16, 16, half, row_major> a;
    fragment<matrix_b, 16, 16, 16, half, row_major> b;
    fragment<accumulator, 16, 16, 16, float> c;
    fill_fragment(c, 0.0f);
    for (int k = 0; k < K; k += 32) {
        for (int i = threadIdx.x; i < 32 * 4; i += 128) // eight halves at a time
            *(int4 *)&a_tile[i / 4][i % 4 * 8] = *(const int4 *)&A[(row + i / 4) * K + k + i % 4 * 8];
        for (int i = threadIdx.x; i < 32 * 2; i += 128)
            *(int4 *)&b_tile[i / 2][i % 2 * 8] = *(const int4 *)&B[(k + i / 2) * N + column + i % 2 * 8];
        __syncthreads();
        load_matrix_sync(a, &a_tile[warp % 2 * 16][warp / 2 * 16], 32 + skew);
        load_matrix_sync(b, &b_tile[warp / 2 * 16][0], 16 + skew);
        mma_sync(c, a, b, c);
        __syncthreads();
    }
    if (warp / 2 == 1)
        store_matrix_sync(&halves[warp % 2][0][0], c, 16, mem_row_major);
    __syncthreads();
    if (warp / 2 == 0) {
        fragment<accumulator, 16, 16, 16, float> other;
        load_matrix_sync(other, &halves[warp % 2][0][0], 16, mem_row_major);
        for (int i = 0; i < c.num_elements; ++i)
            c.x[i] = 2 * (0.5f * c.x[i] + 0.5f * other.x[i]);
        store_matrix_sync(C + (row + warp % 2 * 16) * N + column, c, N, mem_row_major);
    }
}
