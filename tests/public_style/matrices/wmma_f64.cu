// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "wmma of doubles"
operation = "product_f64_f64_f64"
operation_title = "C = A B, f64 and f64, summed in f64"
dimensions = ["M", "N", "K"]
default_sizes = "32x48x64"
arguments = ["M", "N", "K", "A", "B", "C"]

[arrays.A]
shape = ["M", "K"]
dtype = "f64"

[arrays.B]
shape = ["K", "N"]
dtype = "f64"

[arrays.C]
shape = ["M", "N"]
dtype = "f64"
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
grid = ["N // 8", "M // 8"]
*/
#include <mma.h>
using namespace nvcuda;

// One warp a tile of C.
__global__ void wmma_f64(int M, int N, int K, const double *A, const double *B, double *C)
{
    wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::row_major> b;
    wmma::fragment<wmma::accumulator, 8, 8, 4, double> c;
    wmma::fill_fragment(c, 0.0);
    const int row = blockIdx.y * 8, column = blockIdx.x * 8;
    for (int k = 0; k < K; k += 4) {
        wmma::load_matrix_sync(a, A + row * K + k, K);
        wmma::load_matrix_sync(b, B + k * N + column, N);
        wmma::mma_sync(c, a, b, c);
    }
    wmma::store_matrix_sync(C + row * N + column, c, N, wmma::mem_row_major);
}
