// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Two buffers, and no barrier before one is filled again"
operation = "product_f32_f32_f32"
operation_title = "C = A B, f32 and f32, summed in f32"
dimensions = ["M", "N", "K"]
default_sizes = "64x32x40"
arguments = ["M", "N", "K", "A", "B", "C"]

[arrays.A]
shape = ["M", "K"]
dtype = "f32"

[arrays.B]
shape = ["K", "N"]
dtype = "f32"

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
grid = ["N // 32", "M // 32"]
*/
// executor: failed: race
// gpu: any: the copies may be late enough
#include <cuda_pipeline.h>

__global__ void __launch_bounds__(64) bad_double_buffer(int M, int N, int K, const float *A, const float *B, float *C)
{
    __shared__ __align__(16) float As[2][32][8], Bs[2][8][32];
    const int t = threadIdx.x, row0 = blockIdx.y * 32, col0 = blockIdx.x * 32;
    const int r = t / 8 * 4, c = t % 8 * 4;
    float acc[4][4] = {};
    auto fetch = [&](int buffer, int k) {
        __pipeline_memcpy_async(&As[buffer][t / 2][t % 2 * 4], &A[(row0 + t / 2) * K + k + t % 2 * 4], 16); // <- here
        __pipeline_memcpy_async(&Bs[buffer][t / 8][t % 8 * 4], &B[(k + t / 8) * N + col0 + t % 8 * 4], 16); // <- here
        __pipeline_commit();
    };
    fetch(0, 0);
    for (int k = 0, now = 0; k < K; k += 8, now ^= 1) {
        if (k + 8 < K) {
            fetch(now ^ 1, k + 8);
            __pipeline_wait_prior(1);
        } else {
            __pipeline_wait_prior(0);
        }
        __syncthreads();
#pragma unroll
        for (int kk = 0; kk < 8; ++kk) {
            const float4 b = *(const float4 *)&Bs[now][kk][c]; // <- here
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float a = As[now][r + i][kk]; // <- here
                acc[i][0] += a * b.x, acc[i][1] += a * b.y, acc[i][2] += a * b.z, acc[i][3] += a * b.w;
            }
        }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
        *(float4 *)&C[(row0 + r + i) * N + col0 + c] = make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]);
}
