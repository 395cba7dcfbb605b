// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Fragments"
operation = "hgemm"
rung = 10
idea = "CUDA's own interface to tensor cores: each warp has 32x32 elements of C in four fragments, and loads those of A and B from global memory."
arguments = ["M", "N", "K", "A", "B", "C"]

[launch]
block = [128]
grid = ["N // 64", "M // 64"]

[[require]]
condition = "M % 64 == 0 and N % 64 == 0 and K % 16 == 0"
because = "{id} checks no bounds: M and N must be multiples of 64, K of 16"
*/
#include <mma.h>

using namespace nvcuda;

extern "C" __global__ void __launch_bounds__(128)
    fragments(int M, int N, int K, const __half *A, const __half *B, float *C)
{
    const int warp = threadIdx.x / 32;
    const int m = blockIdx.y * 64 + warp / 2 * 32;
    const int n = blockIdx.x * 64 + warp % 2 * 32;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[2][2];
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j)
            wmma::fill_fragment(sum[i][j], 0.0f);
    for (int k = 0; k < K; k += 16) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a[2];
        wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> b[2];
        for (int i = 0; i < 2; ++i) {
            wmma::load_matrix_sync(a[i], A + (size_t)(m + 16 * i) * K + k, K);
            wmma::load_matrix_sync(b[i], B + (size_t)k * N + n + 16 * i, N);
        }
        for (int i = 0; i < 2; ++i)
            for (int j = 0; j < 2; ++j)
                wmma::mma_sync(sum[i][j], a[i], b[j], sum[i][j]);
    }
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j)
            wmma::store_matrix_sync(C + (size_t)(m + 16 * i) * N + n + 16 * j, sum[i][j], N, wmma::mem_row_major);
}
