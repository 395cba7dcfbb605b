// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "wmma of bfloat16"
operation = "product_bf16_bf16_f32"
operation_title = "C = A B, bf16 and bf16, summed in f32"
dimensions = ["M", "N", "K"]
default_sizes = "32x48x64"
arguments = ["M", "N", "K", "A", "B", "C"]

[arrays.A]
shape = ["M", "K"]
dtype = "bf16"

[arrays.B]
shape = ["K", "N"]
dtype = "bf16"

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
block = [32]
grid = ["N // 16", "M // 16"]
*/
#include <mma.h>
#include <cuda_bf16.h>
using namespace nvcuda;

// One warp a tile of C.
__global__ void wmma_bf16(int M, int N, int K, const __nv_bfloat16 *A, const __nv_bfloat16 *B, float *C)
{
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::row_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::fill_fragment(c, 0.0f);
    const int row = blockIdx.y * 16, column = blockIdx.x * 16;
    for (int k = 0; k < K; k += 16) {
        wmma::load_matrix_sync(a, A + row * K + k, K);
        wmma::load_matrix_sync(b, B + k * N + column, N);
        wmma::mma_sync(c, a, b, c);
    }
    wmma::store_matrix_sync(C + row * N + column, c, N, wmma::mem_row_major);
}
