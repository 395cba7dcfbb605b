// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "wmma of 32 x 8 x 16"
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
block = [32]
grid = ["N // 8", "M // 32"]
*/
#include <mma.h>
using namespace nvcuda;

// One warp a tile of C.
__global__ void wmma_tall(int M, int N, int K, const half *A, const half *B, float *C)
{
    wmma::fragment<wmma::matrix_a, 32, 8, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 32, 8, 16, half, wmma::row_major> b;
    wmma::fragment<wmma::accumulator, 32, 8, 16, float> c;
    wmma::fill_fragment(c, 0.0f);
    const int row = blockIdx.y * 32, column = blockIdx.x * 8;
    for (int k = 0; k < K; k += 16) {
        wmma::load_matrix_sync(a, A + row * K + k, K);
        wmma::load_matrix_sync(b, B + k * N + column, N);
        wmma::mma_sync(c, a, b, c);
    }
    wmma::store_matrix_sync(C + row * N + column, c, N, wmma::mem_row_major);
}
