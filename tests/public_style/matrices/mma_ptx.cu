// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "mma.sync of 16 x 8 x 16 and ldmatrix by inline PTX"
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
grid = ["N // 8", "M // 16"]
*/
#include <cuda_fp16.h>

__device__ unsigned shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

__global__ void mma_ptx(int M, int N, int K, const half *A, const half *B, float *C)
{
    __shared__ __align__(16) half a_tile[16][16], b_tile[16][8];
    const int row = blockIdx.y * 16, column = blockIdx.x * 8, lane = threadIdx.x;
    float d[4] = {};
    for (int k = 0; k < K; k += 16) {
        *(int4 *)&a_tile[lane / 2][lane % 2 * 8] = *(const int4 *)&A[(row + lane / 2) * K + k + lane % 2 * 8];
        if (lane < 16)
            *(int4 *)&b_tile[lane][0] = *(const int4 *)&B[(k + lane) * N + column];
        __syncwarp();
        unsigned a[4], b[2];
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                     : "r"(shared_address(&a_tile[lane % 16][lane / 16 * 8])));
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                     : "=r"(b[0]), "=r"(b[1])
                     : "r"(shared_address(&b_tile[lane % 16][0])));
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
                     "{%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
        __syncwarp();
    }
    float *c = C + (row + lane / 4) * N + column + lane % 4 * 2;
    *(float2 *)c = make_float2(d[0], d[1]);
    *(float2 *)(c + 8 * N) = make_float2(d[2], d[3]);
}
