// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Square tiles in shared memory, x along rows"
problem = "gemm"
rung = 120
study = "B"
aliases = ["matmul_shared_memory"]
idea = "The block shares one tile of A and one of B per step, but x still walks rows in global and in shared memory."
after = "naive_x_rows"
change = "Tiles in shared memory take the place of direct loads: global_load_requests fall by the edge of the tile, load efficiency stays low and shared_load_bank_conflicts appear."
bottleneck = "Bank conflicts and sectors: the lanes of a warp walk down a column of every tile and of every matrix."
reference = "Study B, matmul_shared_memory; the study tested both bounds with and instead of or and kept float32 tiles of float64 data, here each load is checked and tiles have the arrays' type"
dtypes = ["f32", "f64"]
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]

[moves]
global_load_requests = "falls"
global_load_sectors = "falls"
shared_load_bank_conflicts = "rises"
shared_store_bank_conflicts = "rises"

[launch]
block = [16, 16]
any_block = true
grid = ["cdiv(M, block_x)", "cdiv(N, block_y)"]

[candidates]
block = [[8, 8], [16, 16], [32, 32]]

[[require]]
condition = "block_x == block_y"
because = "smem_tiled_x_rows loads square tiles: block x and block y must be equal"

[[published]]
size = "6000x4000x4800"
time_ms = 799.5
note = "float64 arrays"
*/

#define TILE BLOCK_X

extern "C" __global__ void smem_tiled_x_rows(int M, int N, int K, real alpha, const real *A, const real *B, real beta,
                                             real *C)
{
    // Coordinates: x walks rows, as in naive_x_rows.
    const int tx = threadIdx.x;             // 0 .. TILE-1
    const int ty = threadIdx.y;             // 0 .. TILE-1
    const int row = blockIdx.x * TILE + tx; // 0 .. M-1
    const int col = blockIdx.y * TILE + ty; // 0 .. N-1

    // Shared memory. Lanes differ in the first index: they are TILE elements apart and share few banks.
    __shared__ real As[TILE][TILE]; // (row of C, k)
    __shared__ real Bs[TILE][TILE]; // (k, column of C)

    // Pointers.
    const real *a = A + (size_t)row * K;
    const real *b = B + col;
    real *c = C + (size_t)row * N + col;

    real sum = 0;
    for (int k0 = 0; k0 < K; k0 += TILE) {
        // Load; beyond the matrix the tiles hold zeros, which add nothing, so no thread leaves the loop early.
        As[tx][ty] = row < M && k0 + ty < K ? a[k0 + ty] : real(0);
        Bs[tx][ty] = col < N && k0 + tx < K ? b[(size_t)(k0 + tx) * N] : real(0);
        __syncthreads();

        // Compute.
#pragma unroll
        for (int k = 0; k < TILE; ++k)
            sum += As[tx][k] * Bs[k][ty];
        __syncthreads();
    }

    // Write back.
    if (row < M && col < N)
        *c = beta == 0 ? alpha * sum : alpha * sum + beta * *c;
}
