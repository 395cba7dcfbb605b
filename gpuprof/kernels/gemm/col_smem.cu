// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Tiles in shared memory, with bank conflicts"
problem = "gemm"
rung = 320
study = "D"
aliases = ["mysgemm_v2"]
idea = "The block shares one 32x32 tile of A and one of B per step, both stored row by row although the matrices are column-major."
after = "col_naive"
change = "Tiles in shared memory take the place of direct loads: global_load_requests fall 32-fold, but shared_load_bank_conflicts and shared_store_bank_conflicts appear."
bottleneck = "Bank conflicts: the 32 lanes of a warp meet in the same banks at every load of A, 32 wavefronts each. That costs more than the tiles save: it is slower than col_naive, and here to show what the layout of a tile decides."
reference = "Study D, mysgemm_v2"
layout = "col"
dtypes = ["f32"]
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]

[moves]
global_load_requests = "falls"
shared_load_bank_conflicts = "rises"
shared_store_bank_conflicts = "rises"

[launch]
block = [32, 32]
grid = ["cdiv(M, TILE)", "cdiv(N, TILE)"]

[parameters]
TILE = 32 # edge of the C tile and of the tiles of A and B

[[require]]
condition = "block_x == TILE and block_y == TILE"
because = "col_smem has one thread for each element of a square tile: the block must be TILE x TILE"
*/

extern "C" __global__ void __launch_bounds__(TILE * TILE)
    col_smem(int M, int N, int K, real alpha, const real *A, const real *B, real beta, real *C)
{
    // Coordinates: x walks rows, so a warp is one column of the tile.
    const int i = threadIdx.x;             // row in the tile, 0 .. TILE-1
    const int j = threadIdx.y;             // column in the tile, 0 .. TILE-1
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
