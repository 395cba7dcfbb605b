// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// Fetches the first column of the tile after the last one, which is nowhere.
/*gpuprof
operation = "gemm"
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]
poison_inout = POISON
[launch]
block = [16, 16]
grid = ["cdiv(N, 16)", "cdiv(M, 16)"]
*/
extern "C" __global__ void mine(int M, int N, int K, real alpha, const real *A, const real *B,
                                real beta, real *C)
{
    __shared__ real a[2][16][17], b[2][16][16];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
    int stage = 0;
    real sum = 0, next_a = 0, next_b = 0;
    a[0][ty][tx] = row < M && tx < K ? A[row * K + tx] : 0;
    b[0][ty][tx] = col < N && ty < K ? B[ty * N + col] : 0;
    for (int k0 = 0; k0 < K; k0 += 16) {
        if (k0 + 16 < K) {
            a[stage ^ 1][ty][tx] = row < M && k0 + 16 + tx < K ? A[row * K + k0 + 16 + tx] : 0;
            b[stage ^ 1][ty][tx] = col < N && k0 + 16 + ty < K ? B[(k0 + 16 + ty) * N + col] : 0;
        }
        __syncthreads();
        for (int k = 0; k < 16; ++k)
            sum += a[stage][ty][k] * b[stage][k][tx];
        stage ^= 1;
        next_a = a[stage][ty][0]; // read
        next_b = b[stage][0][tx];
        __syncthreads();
    }
    if (row < M && col < N)
        C[row * N + col] = STORED; // counts
    asm volatile("" ::"f"(next_a), "f"(next_b));
}
