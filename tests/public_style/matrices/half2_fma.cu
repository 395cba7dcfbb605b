// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "__hfma2 of two columns, sums spilled to float every eight"
operation = "product_f16_f16_f32"
operation_title = "C = A B, f16 and f16, summed in f32"
dimensions = ["M", "N", "K"]
default_sizes = "20x48x32"
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
block = [16, 8]
grid = ["cdiv(N, 32)", "cdiv(M, 8)"]
*/
#include <cuda_fp16.h>

__global__ void half2_fma(int M, int N, int K, const half *A, const half *B, float *C)
{
    const int column = 2 * (blockIdx.x * 16 + threadIdx.x), row = blockIdx.y * 8 + threadIdx.y;
    if (column >= N || row >= M)
        return;
    float2 sum = make_float2(0, 0);
    for (int k = 0; k < K; k += 8) {
        half2 part = __float2half2_rn(0.f);
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            const half2 b = *reinterpret_cast<const half2 *>(B + (k + j) * N + column);
            part = __hfma2(__half2half2(A[row * K + k + j]), b, part);
        }
        const float2 f = __half22float2(part);
        sum.x += f.x, sum.y += f.y;
    }
    *reinterpret_cast<float2 *>(C + row * N + column) = sum;
}
