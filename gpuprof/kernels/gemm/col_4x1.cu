// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Four rows per thread"
problem = "gemm"
rung = 350
study = "D"
aliases = ["mysgemm_v5"]
idea = "256 threads compute the same 32x32 tile, four rows each, so that one load of B feeds four FMAs."
after = "col_smem_noconflict"
change = "A quarter of the threads, each with four sums in registers: shared_load_wavefronts fall; store efficiency falls to 25 %, since lanes now store four rows apart."
bottleneck = "Global load and store instructions: every one moves 4 bytes per lane."
reference = "Study D, mysgemm_v5"
layout = "col"
dtypes = ["f32"]
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]

[moves]
shared_load_wavefronts = "falls"
barriers = "falls"
global_store_efficiency_pct = "falls"
block_threads = "falls"

[launch]
block = [256]
grid = ["cdiv(M, TILE)", "cdiv(N, TILE)"]

[parameters]
TILE = 32 # edge of the C tile and of the tiles of A and B

[[require]]
condition = "(TILE == 16 or TILE == 32) and block_x * 4 == TILE * TILE"
because = "col_4x1 has one thread for four rows of a square tile: TILE must be 16 or 32, and the block TILE*TILE/4 threads"
*/

constexpr int TILE_LOG2 = TILE == 32 ? 5 : 4; // t >> TILE_LOG2 is t / TILE
constexpr int PAD = 4;                        // elements between columns of Bs: those that a warp reads differ in bank

extern "C" __global__ void __launch_bounds__(TILE * TILE / 4)
    col_4x1(int M, int N, int K, real alpha, const real *A, const real *B, real beta, real *C)
{
    // Coordinates: this thread computes rows row .. row+3 of column col.
    const int t = threadIdx.x;              // 0 .. TILE*TILE/4-1
    const int i = (t & (TILE / 4 - 1)) * 4; // first row in the tile, 0 .. TILE-4
    const int j = t >> (TILE_LOG2 - 2);     // column in the tile, 0 .. TILE-1
    const int row = blockIdx.x * TILE + i;  // 0 .. M-1
    const int col = blockIdx.y * TILE + j;  // 0 .. N-1

    // It loads row load_i and columns load_j + TILE/4*x of both tiles: a warp loads one column at a time, coalesced.
    const int load_i = t & (TILE - 1); // 0 .. TILE-1
    const int load_j = t >> TILE_LOG2; // 0 .. TILE/4-1
    const int load_row = blockIdx.x * TILE + load_i;
    const int load_col = blockIdx.y * TILE + load_j;

    // Shared memory.
    __shared__ real As[TILE][TILE];       // (k, row of C)
    __shared__ real Bs[TILE][TILE + PAD]; // (column of C, k)

    // Pointers: element (i, j) of A, B, C is at i + j * (M, K, M).
    const real *a = A + load_row + (size_t)load_j * M;
    const real *b = B + load_i + (size_t)load_col * K;
    real *c = C + row + (size_t)col * M;

    real sum[4] = {};
    for (int k0 = 0; k0 < K; k0 += TILE) {
        // Load four elements of each tile; zeros beyond the matrix.
#pragma unroll
        for (int x = 0; x < 4; ++x) {
            const int step = TILE / 4 * x; // columns
            As[load_j + step][load_i] = load_row < M && k0 + load_j + step < K ? a[(size_t)step * M] : real(0);
            Bs[load_j + step][load_i] = load_col + step < N && k0 + load_i < K ? b[(size_t)step * K] : real(0);
        }
        a += (size_t)TILE * M;
        b += TILE;
        __syncthreads();

        // Compute: one element of B serves four rows.
#pragma unroll
        for (int k = 0; k < TILE; ++k) {
            const real b_k = Bs[j][k];
#pragma unroll
            for (int x = 0; x < 4; ++x)
                sum[x] += As[k][i + x] * b_k;
        }
        __syncthreads();
    }

    // Write back; with beta = 0 the old content of C is never read.
#pragma unroll
    for (int x = 0; x < 4; ++x)
        if (row + x < M && col < N)
            c[x] = beta == 0 ? alpha * sum[x] : alpha * sum[x] + beta * c[x];
}
