// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Fragments from a tile that other warps are still writing"
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
block = [64]
grid = ["N // 16", "M // 16"]
*/
// executor: failed: race
// gpu: any: the other warp may be in time
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda::wmma;

__global__ void bad_wmma_unsynced(int M, int N, int K, const half *A, const half *B, float *C)
{
    __shared__ half a_tile[16][16], b_tile[16][16];
    const int row = blockIdx.y * 16, column = blockIdx.x * 16;
    fragment<matrix_a, 16, 16, 16, half, row_major> a;
    fragment<matrix_b, 16, 16, 16, half, row_major> b;
    fragment<accumulator, 16, 16, 16, float> c;
    fill_fragment(c, 0.0f);
    for (int k = 0; k < K; k += 16) {
        for (int i = threadIdx.x; i < 256; i += 64) {
            a_tile[i / 16][i % 16] = A[(row + i / 16) * K + k + i % 16];
            b_tile[i / 16][i % 16] = B[(k + i / 16) * N + column + i % 16];
        }
        if (threadIdx.x < 32) {
            load_matrix_sync(a, &a_tile[0][0], 16); // <- here
            load_matrix_sync(b, &b_tile[0][0], 16);
            mma_sync(c, a, b, c);
        }
        __syncthreads();
    }
    if (threadIdx.x < 32)
        store_matrix_sync(C + row * N + column, c, N, mem_row_major);
}
