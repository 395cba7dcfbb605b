// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "One thread per element, x along rows"
problem = "gemm"
rung = 110
study = "B"
aliases = ["matmul"]
idea = "Each thread computes one element of C, but x walks the rows: the 32 lanes of a warp own elements that lie far apart."
after = "naive"
change = "naive with x and y exchanged: at 16x16 in float32, load efficiency falls to 13.2 % and store efficiency to 25 %."
bottleneck = "Sectors: neighbouring lanes read and write addresses a whole row of the matrix apart."
reference = "Study B, matmul"
dtypes = ["f32", "f64"]
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]

[moves]
global_load_efficiency_pct = "falls"
global_store_efficiency_pct = "falls"
global_load_sectors = "rises"

[launch]
block = [16, 16]
any_block = true
grid = ["cdiv(M, block_x)", "cdiv(N, block_y)"]

[candidates]
block = [[8, 8], [16, 16], [32, 8], [32, 16], [32, 32], [64, 4], [128, 2], [256]]

[[published]]
size = "6000x4000x4800"
time_ms = 1437.1
note = "float64 arrays"
*/

extern "C" __global__ void naive_x_rows(int M, int N, int K, real alpha, const real *A, const real *B, real beta,
                                        real *C)
{
    // Coordinates: x walks rows. Neighbouring lanes then differ by a whole row in A and C: the classic mistake.
    const int row = blockIdx.x * blockDim.x + threadIdx.x; // 0 .. M-1
    const int col = blockIdx.y * blockDim.y + threadIdx.y; // 0 .. N-1
    if (row >= M || col >= N)
        return;

    // Pointers. Offsets are 64-bit: a matrix may hold more than 2^31 elements.
    const real *a = A + (size_t)row * K;
    const real *b = B + col;
    real *c = C + (size_t)row * N + col;

    // Compute: per k a warp's load of A touches a sector for each of its rows, its load of B one for its few columns.
    real sum = 0;
    for (int k = 0; k < K; ++k)
        sum += a[k] * b[(size_t)k * N];

    // Write back; with beta = 0 the old content of C is never read.
    *c = beta == 0 ? alpha * sum : alpha * sum + beta * *c;
}
