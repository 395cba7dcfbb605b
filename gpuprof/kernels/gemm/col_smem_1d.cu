// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "One-dimensional block"
problem = "gemm"
rung = 330
study = "D"
aliases = ["mysgemm_v3"]
idea = "The block is a line of 1024 threads, and each thread derives its row and column from one index."
after = "col_smem"
change = "Only the way a thread finds its coordinates: it is meant to save registers per thread, current compilers allocate the same, and no counter moves."
bottleneck = "Bank conflicts, as in col_smem."
reference = "Study D, mysgemm_v3"
layout = "col"
dtypes = ["f32"]
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]

[moves]
registers_per_thread = "stays"
shared_load_wavefronts = "stays"
global_load_requests = "stays"

[launch]
block = [1024]
grid = ["cdiv(M, TILE)", "cdiv(N, TILE)"]

[parameters]
TILE = 32 # edge of the C tile and of the tiles of A and B

[[require]]
condition = "(TILE == 16 or TILE == 32) and block_x == TILE * TILE"
because = "col_smem_1d has one thread for each element of a square tile: TILE must be 16 or 32, and the block TILE*TILE threads"
*/

constexpr int TILE_LOG2 = TILE == 32 ? 5 : 4; // t >> TILE_LOG2 is t / TILE

extern "C" __global__ void __launch_bounds__(TILE * TILE)
    col_smem_1d(int M, int N, int K, real alpha, const real *A, const real *B, real beta, real *C)
{
    // Coordinates: a warp is one column of the tile, its lanes walk down the rows.
    const int t = threadIdx.x;             // 0 .. TILE*TILE-1
    const int i = t & (TILE - 1);          // row in the tile, 0 .. TILE-1
    const int j = t >> TILE_LOG2;          // column in the tile, 0 .. TILE-1
    const int row = blockIdx.x * TILE + i; // 0 .. M-1
    const int col = blockIdx.y * TILE + j; // 0 .. N-1

    // Shared memory, row-major: a warp's lanes, one row apart, are TILE elements apart and meet in one bank.
    __shared__ real As[TILE][TILE]; // (row of C, k)
    __shared__ real Bs[TILE][TILE]; // (k, column of C)

    // Pointers: element (i, j) of A, B, C is at i + j * (M, K, M).
    const real *a = A + row + (size_t)j * M; // row of A, column j of its tile
    const real *b = B + i + (size_t)col * K; // row i of the tile of B, column of B
    real *c = C + row + (size_t)col * M;

    real sum = 0;
    for (int k0 = 0; k0 < K; k0 += TILE) {
        // Load one element of each tile; zeros beyond the matrix.
        As[i][j] = row < M && k0 + j < K ? *a : real(0);
        Bs[i][j] = col < N && k0 + i < K ? *b : real(0);
        a += (size_t)TILE * M;
        b += TILE;
        __syncthreads();

        // Compute: As is read down one bank, 32 wavefronts for each load; Bs is a broadcast.
#pragma unroll
        for (int k = 0; k < TILE; ++k)
            sum += As[i][k] * Bs[k][j];
        __syncthreads();
    }

    // Write back; with beta = 0 the old content of C is never read.
    if (row < M && col < N)
        *c = beta == 0 ? alpha * sum : alpha * sum + beta * *c;
}
