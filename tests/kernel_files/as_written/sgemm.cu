// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
operation = "gemm"
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]
entry = "sgemm_tiled<BM, BN, BK, TM, TN>"

[parameters]
BM = 32
BN = 64
BK = 8
TM = 4
TN = 8

[launch]
block = [64]
grid = ["cdiv(N, BN)", "cdiv(M, BM)"]

[[variants]]
id = "tiled"

[[variants]]
id = "tiled_small"
parameters = { BM = 16, BN = 32, TM = 2, TN = 4 }

[[variants]]
id = "plain"
entry = "simple::sgemm_plain"
launch = { block = [16, 16], any_block = true, grid = ["cdiv(N, block_x)", "cdiv(M, block_y)"] }

[[variants]]
id = "typed"
entry = "sgemm_typed<real>"
dtypes = ["f32", "f64"]
launch = { block = [32, 8], grid = ["cdiv(N, 32)", "cdiv(M, 8)"] }
*/
#include <algorithm>
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <vector>
#define CEIL_DIV(M, N) (((M) + (N) - 1) / (N))
#define CUDA_CHECK(call) do { cudaError_t error = (call); if (error != cudaSuccess) { \
    fprintf(stderr, "%s\n", cudaGetErrorString(error)); exit(EXIT_FAILURE); } } while (0)

struct GpuTimer {
    cudaEvent_t start, stop;
    GpuTimer() { cudaEventCreate(&start); cudaEventCreate(&stop); }
};

template <const int BM, const int BN, const int BK, const int TM, const int TN>
__global__ void __launch_bounds__(BM / TM * (BN / TN))
    sgemm_tiled(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C)
{
    constexpr int threads = BM / TM * (BN / TN);
    assert(blockDim.x == threads);
    __shared__ float As[BM][BK], Bs[BK][BN];
    const uint row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    const uint row = threadIdx.x / (BN / TN) * TM, col = threadIdx.x % (BN / TN) * TN;
    float acc[TM][TN] = {};
    for (uint k0 = 0; k0 < K; k0 += BK) {
        for (uint i = threadIdx.x; i < BM * BK; i += threads)
            As[i / BK][i % BK] =
                row0 + i / BK < M && k0 + i % BK < K ? A[(row0 + i / BK) * K + k0 + i % BK] : 0;
        for (uint i = threadIdx.x; i < BK * BN; i += threads)
            Bs[i / BN][i % BN] =
                k0 + i / BN < K && col0 + i % BN < N ? B[(k0 + i / BN) * N + col0 + i % BN] : 0;
        __syncthreads();
        for (uint k = 0; k < BK; ++k)
            for (uint i = 0; i < TM; ++i)
                for (uint j = 0; j < TN; ++j)
                    acc[i][j] += As[row + i][k] * Bs[k][col + j];
        __syncthreads();
    }
    for (uint i = 0; i < std::min(TM, int(M - row0 - row)) && row0 + row < M; ++i)
        for (uint j = 0; j < TN && col0 + col + j < N; ++j) {
            float *c = C + (row0 + row + i) * N + col0 + col + j;
            *c = alpha * acc[i][j] + (beta == 0 ? 0 : beta * *c);
        }
}

namespace simple {
__global__ void sgemm_plain(
    int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= N || y >= M) return;
    float sum = 0;
    for (int k = 0; k < K; ++k) sum += A[y * K + k] * B[k * N + x];
    C[y * N + x] = alpha * sum + (beta == 0 ? 0 : beta * C[y * N + x]);
}
}

template <typename T>
__global__ void sgemm_typed(int M, int N, int K, T alpha, const T *A, const T *B, T beta, T *C)
{
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x >= N || y >= M) return;
    T sum = 0;
    for (int k = 0; k < K; ++k) sum += A[y * K + k] * B[k * N + x];
    C[y * N + x] = alpha * sum + (beta == 0 ? 0 : beta * C[y * N + x]);
}

void run_sgemm(int M, int N, int K, float alpha, float *A, float *B, float beta, float *C)
{
    GpuTimer timer;
    dim3 grid(CEIL_DIV(N, 64), CEIL_DIV(M, 32)), block(64);
    sgemm_tiled<32, 64, 8, 4, 8><<<grid, block>>>(M, N, K, alpha, A, B, beta, C);
    CUDA_CHECK(cudaDeviceSynchronize());
}

int main(int argc, char **argv)
{
    std::vector<float> host(64 * 64);
    std::fill(host.begin(), host.end(), 1.0f);
    float *a, *b, *c;
    CUDA_CHECK(cudaMalloc(&a, host.size() * sizeof(float)));
    run_sgemm(64, 64, 64, 1, a, b, 0, c);
    printf("done\n");
    return 0;
}
