// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "__dp4a of four bytes at a time, with a transposed load by __byte_perm"
operation = "product_i8_i8_i32"
operation_title = "C = A B, i8 and i8, summed in i32"
dimensions = ["M", "N", "K"]
default_sizes = "10x70x64"
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
block = [32, 4]
grid = ["cdiv(N, 32)", "cdiv(M, 4)"]
*/
__global__ void dp4a(int M, int N, int K, const signed char *A, const signed char *B, int *C)
{
    const int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 4 + threadIdx.y;
    if (column >= N || row >= M)
        return;
    int sum = 0;
    for (int k = 0; k < K; k += 4) {
        const int a = *reinterpret_cast<const int *>(A + row * K + k);
        const int b0 = B[k * N + column], b1 = B[(k + 1) * N + column];
        const int b2 = B[(k + 2) * N + column], b3 = B[(k + 3) * N + column];
        const int low = __byte_perm(b0, b1, 0x4040), high = __byte_perm(b2, b3, 0x4040);
        sum = __dp4a(a, (int)__byte_perm(low, high, 0x5410), sum);
    }
    C[row * N + column] = sum;
}
