// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A cluster of two blocks that split K and add up through distributed shared memory"
operation = "product_f32_f32_f32"
operation_title = "C = A B, f32 and f32, summed in f32"
dimensions = ["M", "N", "K"]
default_sizes = "20x35x30"
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
grid = ["2", "cdiv(N, 16)", "cdiv(M, 16)"]
*/
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__global__ void __cluster_dims__(2, 1, 1) outer_products(
    int M, int N, int K, const float *A, const float *B, float *C)
{
    __shared__ float part[16][16];
    auto cluster = cg::this_cluster();
    const unsigned rank = cluster.block_rank();
    const int col = blockIdx.y * 16 + threadIdx.x, row = blockIdx.z * 16 + threadIdx.y;
    float sum = 0;
    if (row < M && col < N)
        for (int k = rank; k < K; k += 2)
            sum += A[row * K + k] * B[k * N + col];
    part[threadIdx.y][threadIdx.x] = sum;
    auto token = cluster.barrier_arrive();
    cluster.barrier_wait(cuda::std::move(token));
    if (rank == 0 && row < M && col < N) {
        const float(*other)[16] = cluster.map_shared_rank(part, 1);
        C[row * N + col] = sum + other[threadIdx.y][threadIdx.x];
    }
    cluster.sync();
}
