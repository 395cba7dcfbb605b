// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// A product whose threads store by one line, STORE; the header says more, HEADER.
/*gpuprof
operation = "gemm"
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]
HEADER
[launch]
block = [16, 16]
grid = ["cdiv(N, block_x)", "cdiv(M, block_y)"]
*/
extern "C" __global__ void mine(int M, int N, int K, real alpha, const real *A, const real *B,
                                real beta, real *C)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || column >= N)
        return;
    real sum = 0;
    for (int k = 0; k < K; ++k)
        sum += A[row * K + k] * B[k * N + column];
    STORE
}
