// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Four rows per thread, moved as float4"
problem = "gemm"
rung = 360
study = "D"
aliases = ["mysgemm_v6"]
idea = "The four neighbouring rows that a thread owns are one float4: it loads and stores them with one instruction."
after = "col_4x1"
change = "16 bytes per lane and instruction: global_load_requests and global_store_requests fall to a quarter, and store efficiency returns to 100 %."
bottleneck = "Shared-memory load instructions: more than one operand is still read for each FMA, so that fewer global requests gain nothing at large sizes yet."
reference = "Study D, mysgemm_v6"
layout = "col"
dtypes = ["f32"]
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]

[moves]
global_load_requests = "falls"
global_store_requests = "falls"
global_store_efficiency_pct = "rises"
shared_load_wavefronts = "stays"

[launch]
block = [256]
grid = ["cdiv(M, TILE)", "cdiv(N, TILE)"]

[parameters]
TILE = 32 # edge of the C tile and of the tiles of A and B

[[require]]
condition = "(TILE == 16 or TILE == 32) and block_x * 4 == TILE * TILE"
because = "col_4x1_float4 has one thread for four rows of a square tile: TILE must be 16 or 32, and the block TILE*TILE/4 threads"
*/

constexpr int TILE_LOG2 = TILE == 32 ? 5 : 4; // t >> TILE_LOG2 is t / TILE
constexpr int PAD = 4;                        // elements between columns of Bs: those that a warp reads differ in bank

// Four consecutive elements in global memory, the first `valid` of which are inside the matrix; zeros for the others.
// `aligned`: the leading dimension is a multiple of 4, hence every group of four is wholly inside or wholly outside and
// starts at a multiple of 16 bytes, as device allocations do.
__device__ __forceinline__ float4 load4(const real *from, int valid, bool aligned)
{
    float4 values = {0, 0, 0, 0};
    if (aligned && valid > 0)
        values = *reinterpret_cast<const float4 *>(from);
    const int single = aligned ? 0 : valid; // elements to load one by one
    if (single > 0)
        values.x = from[0];
    if (single > 1)
        values.y = from[1];
    if (single > 2)
        values.z = from[2];
    if (single > 3)
        values.w = from[3];
    return values;
}

// Four consecutive elements of C become alpha * sum + beta * C; with beta = 0 the old content is never read.
__device__ __forceinline__ void update4(real *c, const real *sum, int valid, bool aligned, real alpha, real beta)
{
    if (aligned) {
        if (valid > 0) {
            float4 result = {alpha * sum[0], alpha * sum[1], alpha * sum[2], alpha * sum[3]};
            if (beta != 0) {
                const float4 old = *reinterpret_cast<const float4 *>(c);
                result.x += beta * old.x;
                result.y += beta * old.y;
                result.z += beta * old.z;
                result.w += beta * old.w;
            }
            *reinterpret_cast<float4 *>(c) = result;
        }
    } else {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            if (i < valid)
                c[i] = beta == 0 ? alpha * sum[i] : alpha * sum[i] + beta * c[i];
    }
}

extern "C" __global__ void __launch_bounds__(TILE * TILE / 4)
    col_4x1_float4(int M, int N, int K, real alpha, const real *A, const real *B, real beta, real *C)
{
    // Coordinates: this thread computes rows row .. row+3 of column col, and loads the same places of both tiles.
    const int t = threadIdx.x;              // 0 .. TILE*TILE/4-1
    const int i = (t & (TILE / 4 - 1)) * 4; // first row in the tile, 0 .. TILE-4
    const int j = t >> (TILE_LOG2 - 2);     // column in the tile, 0 .. TILE-1
    const int row = blockIdx.x * TILE + i;  // 0 .. M-1
    const int col = blockIdx.y * TILE + j;  // 0 .. N-1
    const bool m_aligned = M % 4 == 0;      // columns of A and C start at multiples of 16 bytes
    const bool k_aligned = K % 4 == 0;      // columns of B do

    // Shared memory.
    __shared__ __align__(16) real As[TILE][TILE];       // (k, row of C)
    __shared__ __align__(16) real Bs[TILE][TILE + PAD]; // (column of C, k)

    // Pointers: element (i, j) of A, B, C is at i + j * (M, K, M).
    const real *a = A + row + (size_t)j * M;
    const real *b = B + i + (size_t)col * K;
    real *c = C + row + (size_t)col * M;

    real sum[4] = {};
    for (int k0 = 0; k0 < K; k0 += TILE) {
        // Load four elements of each tile; zeros beyond the matrix.
        *reinterpret_cast<float4 *>(&As[j][i]) = load4(a, k0 + j < K ? M - row : 0, m_aligned);
        *reinterpret_cast<float4 *>(&Bs[j][i]) = load4(b, col < N ? K - k0 - i : 0, k_aligned);
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

    // Write back.
    if (col < N)
        update4(c, sum, M - row, m_aligned, alpha, beta);
}
