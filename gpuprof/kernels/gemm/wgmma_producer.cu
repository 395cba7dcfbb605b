// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
problem = "gemm"
dtypes = ["bf16", "f16"]
[[variants]]
id = "wgmma_producer"
rung = 672
title = "A warp that fetches, warps that multiply"
idea = "One thread of its own fetches tiles as soon as stages are free; two warpgroups do nothing but multiply. Barriers in shared memory say of each stage when it is full and when it is empty."
after = "wgmma_tma"
change = "No warpgroup waits for the other, and each starts a tile's products before those of the last one are done: barriers of the block are gone from the loop. A third warpgroup gives its registers to the others."
bottleneck = "Shared memory: each instruction reads 64x16 of A and 16x128 of B for 64x128 products, 96 bytes a cycle of the 128 that there are. From memory and the L2 cache a block needs two bytes for 64 products."

[variants.moves]
barriers = "falls"
block_threads = "rises"

[[variants]]
id = "wgmma_producer_128x256"
rung = 674
title = "128x256 tiles"
idea = "A warpgroup holds 64x256 sums, 128 in each thread: what it reads of A serves twice as many products, and so does what the block fetches of A."
after = "wgmma_producer"
change = "Half as many blocks: registers_per_thread stay what the launch gives, of which the multiplying warps take 232. Fewer bytes from memory for each product, and 80 bytes a cycle from shared memory instead of 96."
bottleneck = "Each block's first tiles and its writing of C: tensor cores have nothing to do meanwhile."
parameters = { BN = 256 }

[variants.moves]
grid_blocks = "falls"
shared_bytes = "rises"

[tensor_maps.A_map]
array = "A"
box = ["BK", "BM"]
swizzle_bytes = 128

[tensor_maps.B_map]
array = "B"
box = ["64", "BK"]
swizzle_bytes = 128

[[launches]]
entry = "wgmma_producer"
arguments = ["M", "N", "K", "alpha", "A_map", "B_map", "beta", "C"]
block = ["128 + 2 * BM"]
grid = ["cdiv(N, BN)", "cdiv(M, BM)"]
dynamic_shared_bytes = "STAGES * BK * (BM + BN) * real_bytes"

[constants]
BK = 64 # k per tile

[parameters]
BM = 128   # rows of C per block
BN = 128   # columns of C per block
STAGES = 4 # tiles in shared memory

[candidates]
BM = [64, 128]
BN = [64, 128, 192, 256]
STAGES = [3, 4, 5, 6]

[[require]]
condition = "BM == 64 or BM == 128"
because = "{id} has room for the sums of one warpgroup of 64 rows or of two"

[[require]]
condition = "BN == 64 or BN == 128 or BN == 192 or BN == 256"
because = "{id} has products of 64, 128, 192 and 256 columns"

[[require]]
condition = "STAGES >= 2"
because = "{id} needs two STAGES or more: one is computed from, the others fill"

[[require]]
condition = "N % 8 == 0 and K % 8 == 0"
because = "{id} copies 16 bytes at a time: N and K must be multiples of 8"

[[require]]
condition = "90 <= arch < 100"
because = "{id} multiplies by wgmma, which compute capability 9.0 alone has"
*/

#define THREADS (128 + 2 * BM)
#define A_BYTES (2 * BM * BK)
#define B_BYTES (2 * BK * BN)
#define STAGE (A_BYTES + B_BYTES)

#include "tma.cuh"
#include "wgmma.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    wgmma_producer(int M, int N, int K, float alpha, const __grid_constant__ TensorMap A_map,
                   const __grid_constant__ TensorMap B_map, float beta, real *C)
{
    // Coordinates.
    const int t = threadIdx.x;
    const int warp = of_warp(t / 32);
    const int m0 = blockIdx.y * BM;
    const int n0 = blockIdx.x * BN;
    const unsigned tiles = (K + BK - 1) / BK;

    // Shared memory: STAGES tiles of A and of B; for each a barrier that counts the bytes which have arrived, and one
    // that counts the warps which are done with it.
    extern __shared__ __align__(1024) char shared[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES];
    const unsigned stages = (unsigned)__cvta_generic_to_shared(shared);
    const unsigned full = (unsigned)__cvta_generic_to_shared(barriers);
    const unsigned empty = full + 8 * STAGES;
    if (t == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            init_barrier(full + 8 * stage, 1);
            init_barrier(empty + 8 * stage, BM / 64 * 4);
        }
        publish_barriers();
    }
    __syncthreads();

    if (warp < 4) {
        // The warpgroup that fetches: one warp of it.
        if (BM > 64)
            shrink_to<40>();
        for (unsigned tile = 0; warp == 0 && tile < tiles; ++tile) {
            const unsigned stage = stages + tile % STAGES * STAGE;
            const unsigned barrier = full + 8 * (tile % STAGES);
            wait(empty + 8 * (tile % STAGES), tile / STAGES % 2 ^ 1); // at once in the first round
            if (elected()) {
                expect_bytes(barrier, STAGE);
                copy_box(stage, &A_map, tile * BK, m0, barrier);
                for (int n = 0; n < BN; n += ROW)
                    copy_box(stage + A_BYTES + 2 * n * BK, &B_map, n0 + n, tile * BK, barrier);
            }
        }
        return;
    }

    // The warpgroups that multiply.
    if (BM > 64) // a single one has registers enough
        grow_to<232>();
    const int m_group = (warp / 4 - 1) * 64; // first row of C in the block's tile
    float sum[BN / 2];
#pragma unroll 1
    for (unsigned tile = 0; tile < tiles; ++tile) {
        wait(full + 8 * (tile % STAGES), tile / STAGES % 2);
        const unsigned a_tile = stages + tile % STAGES * STAGE;
        const unsigned b_tile = a_tile + A_BYTES;
        begin_products();
#pragma unroll
        for (int k = 0; k < BK; k += 16)
            multiply_add(sum, rows_of_k(a_tile + 2 * (m_group * ROW + k)),
                         rows_of_columns(b_tile + 2 * k * ROW, 2 * BK * ROW), tile + k > 0);
        close_products();
        // Those of the tile before are done: its stage may fill again.
        wait_for_products<1>();
        if (tile > 0 && t % 32 == 0)
            arrive_at(empty + 8 * ((tile - 1) % STAGES));
    }
    wait_for_products<0>();
    write_sums(sum, m0 + m_group, n0, M, N, alpha, beta, C);
}
