// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Column-major tiles without bank conflicts"
problem = "gemm"
rung = 340
study = "D"
aliases = ["mysgemm_v4"]
idea = "The tiles in shared memory are column-major too, so the lanes of a warp touch 32 different banks."
after = "col_smem_1d"
change = "The indices of both tiles are exchanged: shared_load_bank_conflicts and shared_store_bank_conflicts fall to 0."
bottleneck = "Shared-memory load instructions: two loads feed each FMA."
reference = "Study D, mysgemm_v4"
layout = "col"
dtypes = ["f32"]
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]

[moves]
shared_load_bank_conflicts = "falls"
shared_store_bank_conflicts = "falls"
shared_load_wavefronts = "falls"

[launch]
block = [1024]
grid = ["cdiv(M, TILE)", "cdiv(N, TILE)"]

[parameters]
TILE = 32 # edge of the C tile and of the tiles of A and B

[[require]]
condition = "(TILE == 16 or TILE == 32) and block_x == TILE * TILE"
because = "col_smem_noconflict has one thread for each element of a square tile: TILE must be 16 or 32, and the block TILE*TILE threads"
*/

constexpr int TILE_LOG2 = TILE == 32 ? 5 : 4; // t >> TILE_LOG2 is t / TILE

extern "C" __global__ void __launch_bounds__(TILE * TILE)
    col_smem_noconflict(int M, int N, int K, real alpha, const real *A, const real *B, real beta, real *C)
{
    // Coordinates: a warp is one column of the tile, its lanes walk down the rows.
    const int t = threadIdx.x;             // 0 .. TILE*TILE-1
    const int i = t & (TILE - 1);          // row in the tile, 0 .. TILE-1
    const int j = t >> TILE_LOG2;          // column in the tile, 0 .. TILE-1
    const int row = blockIdx.x * TILE + i; // 0 .. M-1
    const int col = blockIdx.y * TILE + j; // 0 .. N-1

    // Shared memory, column-major like the matrices: a warp's lanes, one row apart, meet 32 different banks.
    __shared__ real As[TILE][TILE]; // (k, row of C)
    __shared__ real Bs[TILE][TILE]; // (column of C, k)

    // Pointers: element (i, j) of A, B, C is at i + j * (M, K, M).
    const real *a = A + row + (size_t)j * M; // row of A, column j of its tile
    const real *b = B + i + (size_t)col * K; // row i of the tile of B, column of B
    real *c = C + row + (size_t)col * M;

    real sum = 0;
    for (int k0 = 0; k0 < K; k0 += TILE) {
        // Load one element of each tile; zeros beyond the matrix.
        As[j][i] = row < M && k0 + j < K ? *a : real(0);
        Bs[j][i] = col < N && k0 + i < K ? *b : real(0);
        a += (size_t)TILE * M;
        b += TILE;
        __syncthreads();

        // Compute: As is read across the banks, Bs as a broadcast.
#pragma unroll
        for (int k = 0; k < TILE; ++k)
            sum += As[k][i] * Bs[j][k];
        __syncthreads();
    }

    // Write back; with beta = 0 the old content of C is never read.
    if (row < M && col < N)
        *c = beta == 0 ? alpha * sum : alpha * sum + beta * *c;
}
