// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Square tiles in shared memory"
problem = "gemm"
rung = 30
study = "A"
aliases = ["gemmOnGPU2DShareMemV2"]
idea = "The block walks K in steps of its own width and shares one tile of A and one of B per step."
after = "smem_panel"
change = "A tile at a time instead of the whole panel, and each element loaded by one thread only: global_load_requests fall by the edge of the tile, and shared memory no longer depends on K."
bottleneck = "Shared-memory load instructions: two loads still feed each FMA."
reference = "Study A, gemmOnGPU2DShareMemV2; the study returned early around barriers at ragged sizes, here tails are filled with zeros"
dtypes = ["f32", "f64"]
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]

[moves]
global_load_requests = "falls"
global_load_efficiency_pct = "rises"
shared_store_wavefronts = "falls"
shared_bytes = "falls"
barriers = "rises"

[launch]
block = [32, 32]
any_block = true
grid = ["cdiv(N, block_x)", "cdiv(M, block_y)"]
dynamic_shared_bytes = "2 * block_x * block_y * real_bytes"

[candidates]
block = [[8, 8], [16, 16], [32, 32]]

[[require]]
condition = "block_x == block_y"
because = "smem_tiled loads square tiles: block x and block y must be equal"

[[published]]
size = "128"
time_ms = 0.018066

[[published]]
size = "4096"
time_ms = 93.896973
note = "warp occupancy 66.66 %, global load throughput 155.74 GB/s, global load efficiency 100 %"
*/

extern "C" __global__ void smem_tiled(int M, int N, int K, real alpha, const real *A, const real *B, real beta,
                                      real *C)
{
    // Coordinates. The tile edge is the block's.
    const int tile = blockDim.x;
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int col = blockIdx.x * tile + tx; // 0 .. N-1
    const int row = blockIdx.y * tile + ty; // 0 .. M-1

    // Shared memory: As[tile][tile] (row of C, k), then Bs[tile][tile] (k, column of C).
    extern __shared__ real tiles[];
    real *As = tiles;
    real *Bs = tiles + tile * tile;

    // Pointers.
    const real *a = A + (size_t)row * K;
    const real *b = B + col;
    real *c = C + (size_t)row * N + col;

    real sum = 0;
    for (int k0 = 0; k0 < K; k0 += tile) {
        // Load; beyond the matrix the tiles hold zeros, which add nothing, so no thread leaves the loop early.
        As[ty * tile + tx] = row < M && k0 + tx < K ? a[k0 + tx] : real(0);
        Bs[ty * tile + tx] = col < N && k0 + ty < K ? b[(size_t)(k0 + ty) * N] : real(0);
        __syncthreads();

        // Compute.
        for (int k = 0; k < tile; ++k)
            sum += As[ty * tile + k] * Bs[k * tile + tx];
        __syncthreads();
    }

    // Write back.
    if (row < M && col < N)
        *c = beta == 0 ? alpha * sum : alpha * sum + beta * *c;
}
