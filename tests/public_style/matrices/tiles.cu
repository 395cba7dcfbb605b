// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "The tiled product of every course, by a template of the tile"
operation = "product_f32_f32_f32"
operation_title = "C = A B, f32 and f32, summed in f32"
dimensions = ["M", "N", "K"]
default_sizes = "33x47x29"
entry = "matmul<float, 16>"
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
block = [16, 16]
grid = ["cdiv(N, 16)", "cdiv(M, 16)"]
*/
template <typename T, int TILE>
__global__ void matmul(int M, int N, int K, const T *A, const T *B, T *C)
{
    __shared__ T As[TILE][TILE], Bs[TILE][TILE + 1];
    const int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
    T sum = 0;
    for (int t = 0; t < (K + TILE - 1) / TILE; ++t) {
        As[ty][tx] = row < M && t * TILE + tx < K ? A[row * K + t * TILE + tx] : T(0);
        Bs[ty][tx] = col < N && t * TILE + ty < K ? B[(t * TILE + ty) * N + col] : T(0);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; ++k)
            sum += As[ty][k] * Bs[k][tx];
        __syncthreads();
    }
    if (row < M && col < N)
        C[row * N + col] = sum;
}
