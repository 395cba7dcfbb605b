// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "wmma of signed bytes, 8 x 32 x 16"
operation = "product_i8_i8_i32"
operation_title = "C = A B, i8 and i8, summed in i32"
dimensions = ["M", "N", "K"]
default_sizes = "16x64x32"
arguments = ["M", "N", "K", "A", "B", "C"]

[arrays.A]
shape = ["M", "K"]
dtype = "i8"

[arrays.B]
shape = ["K", "N"]
dtype = "i8"

[arrays.C]
shape = ["M", "N"]
dtype = "i32"
role = "out"

[inputs]
A = "integers(-128, 128)"
B = "integers(-128, 128)"

[work]
flops = "2 * M * N * K"
bytes = "M * K + K * N + M * N"

[check]
C = { value = "A @ B", equal = true }

[launch]
block = [32]
grid = ["N // 32", "M // 8"]
*/
#include <mma.h>
using namespace nvcuda;

// One warp a tile of C.
__global__ void wmma_s8_wide(int M, int N, int K, const signed char *A, const signed char *B, int *C)
{
    wmma::fragment<wmma::matrix_a, 8, 32, 16, signed char, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 8, 32, 16, signed char, wmma::row_major> b;
    wmma::fragment<wmma::accumulator, 8, 32, 16, int> c;
    wmma::fill_fragment(c, 0);
    const int row = blockIdx.y * 8, column = blockIdx.x * 32;
    for (int k = 0; k < K; k += 16) {
        wmma::load_matrix_sync(a, A + row * K + k, K);
        wmma::load_matrix_sync(b, B + k * N + column, N);
        wmma::mma_sync(c, a, b, c);
    }
    wmma::store_matrix_sync(C + row * N + column, c, N, wmma::mem_row_major);
}
