// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
problem = "gemm"
dtypes = ["bf16", "f16"]
[[variants]]
id = "wgmma_split"
title = "k split over two blocks"
rung = 675.7
shape_of = "wgmma_producer"
idea = "For a C of few tiles: the two blocks of a cluster share out the k of a tile, and each adds up a half of the sums, which it reads from the other's shared memory."
after = "wgmma_producer"
change = "Twice as many blocks, each with half the k: grid_blocks rise. Large tiles stay, of which a block fetches less for each product than of small ones: an SM takes 64 bytes a cycle."
bottleneck = "Latency: launch, the first tiles, and the meeting of the blocks."

[variants.moves]
grid_blocks = "rises"

[[variants]]
id = "wgmma_split_four"
title = "k split over four blocks"
rung = 675.8
shape_of = "wgmma_producer"
idea = "The same with four blocks a cluster."
after = "wgmma_split"
change = "Four blocks share a tile: grid_blocks rise once more."
bottleneck = "That of wgmma_split."
parameters = { CLUSTER = 4 }

[variants.moves]
grid_blocks = "rises"

[tensor_maps.A_map]
array = "A"
box = ["BK", "BM"]
swizzle_bytes = 128

[tensor_maps.B_map]
array = "B"
box = ["64", "BK"]
swizzle_bytes = 128

[tensor_maps.C_map]
array = "C"
box = ["64", "16"]
swizzle_bytes = 128

[[launches]]
entry = "wgmma_split"
arguments = ["M", "N", "K", "alpha", "A_map", "B_map", "beta", "C", "C_map"]
block = ["128 + 2 * BM"]
grid = ["CLUSTER * cdiv(N, BN)", "cdiv(M, BM)"]
dynamic_shared_bytes = "STAGES * BK * (BM + BN) * real_bytes + 4 * BM * BN + 2 * 2 * 64 * BM"

[constants]
BK = 64 # k per tile

[parameters]
BM = 128   # rows of C per block
BN = 128   # columns of C per block
STAGES = 4 # tiles in shared memory
CLUSTER = 2 # blocks that share the k of a tile

[candidates]
BM = [64, 128]
BN = [64, 128, 192, 256]
STAGES = [3, 4, 5, 6]
CLUSTER = [2, 3, 4, 8]

[[require]]
condition = "BM == 64 or BM == 128"
because = "{id} has room for the sums of one warpgroup of 64 rows or of two"

[[require]]
condition = "BN == 64 or BN == 128 or BN == 192 or BN == 256"
because = "{id} has products of 64, 128, 192 and 256 columns"

[[require]]
condition = "2 <= CLUSTER and CLUSTER <= 8"
because = "{id} shares a tile's k among 2 to 8 blocks"

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

#include "store_sums.cuh"

// Four sums that another block of the cluster has in the same place of its shared memory.
static __device__ __forceinline__ float4 load_of_block(unsigned address, unsigned rank)
{
    float4 v;
    asm volatile("{\n"
                 ".reg .b32 theirs;\n"
                 "mapa.shared::cluster.u32 theirs, %4, %5;\n"
                 "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [theirs];\n"
                 "}"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(address), "r"(rank)
                 : "memory");
    return v;
}

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
    wgmma_split(int M, int N, int K, float alpha, const __grid_constant__ TensorMap A_map,
                const __grid_constant__ TensorMap B_map, float beta, const real *C,
                const __grid_constant__ TensorMap C_map)
{
    // Coordinates.
    const int t = threadIdx.x;
    const int m0 = blockIdx.y * BM;
    const int n0 = blockIdx.x / CLUSTER * BN;
    const int rank = blockIdx.x % CLUSTER;
    const int depth = (K + BK - 1) / BK; // tiles of k, of which this block takes `tiles` from the first-th on
    const int first = (int)((long long)depth * rank / CLUSTER);
    const int tiles = (int)((long long)depth * (rank + 1) / CLUSTER) - first;

    // Shared memory: STAGES tiles of A and of B; for each a barrier that counts the bytes which have arrived, and one
    // that counts the warps which are done with it. Behind the tiles sums for the other blocks, float4 by float4.
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

    if (t < 128) {
        // The warpgroup that fetches: one thread of it.
            if (BM > 64)
            shrink_to<40>();
        for (int tile = 0; t == 0 && tile < tiles; ++tile) {
            const unsigned stage = stages + tile % STAGES * STAGE;
            const unsigned barrier = full + 8 * (tile % STAGES);
            const int k0 = (first + tile) * BK;
            wait(empty + 8 * (tile % STAGES), tile / STAGES % 2 ^ 1); // at once in the first round
            expect_bytes(barrier, STAGE);
            copy_box(stage, &A_map, k0, m0, barrier);
            for (int n = 0; n < BN; n += ROW)
                copy_box(stage + A_BYTES + 2 * n * BK, &B_map, n0 + n, k0, barrier);
        }
        __syncwarp();
        meet_cluster_in_order();
        meet_cluster();
        return;
    }

    // The warpgroups that multiply.
    if (BM > 64) // a single one has registers enough
        grow_to<232>();
    const int m_group = (t / 128 - 1) * 64; // first row of C in the block's tile
    float sum[BN / 2];
#pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
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
    if (tiles == 0) // fewer tiles of k than blocks
#pragma unroll
        for (int i = 0; i < BN / 2; ++i)
            sum[i] = 0;

    // Each block adds up some pieces, of 16 rows by ROW columns, of the tile, a warp those of its rows. A warp's sums lie
    // in the same place of all blocks, four of a thread side by side.
    const int warp = t / 32 - 4;
    const unsigned mine = stages + STAGES * STAGE + (t - 128) * 16; // + 32 * BM for the next eight columns
    const auto owner = [&](int piece) { return (warp * (BN / ROW) + piece) % CLUSTER; };
#pragma unroll
    for (int i = 0; i < BN / 8; ++i)
        if (owner(i / 8) != rank)
            store4(mine + i * 32 * BM, make_float4(sum[4 * i], sum[4 * i + 1], sum[4 * i + 2], sum[4 * i + 3]));
    meet_cluster_in_order();
#pragma unroll
    for (int piece = 0; piece < BN / ROW; ++piece)
        if (owner(piece) == rank) {
            float total[ROW / 2];
#pragma unroll
            for (int i = 0; i < ROW / 2; ++i)
                total[i] = sum[piece * (ROW / 2) + i];
#pragma unroll
            for (int other = 1; other < CLUSTER; ++other)
#pragma unroll
                for (int i = 0; i < ROW / 8; ++i) {
                    const float4 theirs = load_of_block(mine + (piece * 8 + i) * 32 * BM, (rank + other) % CLUSTER);
                    total[4 * i] += theirs.x;
                    total[4 * i + 1] += theirs.y;
                    total[4 * i + 2] += theirs.z;
                    total[4 * i + 3] += theirs.w;
                }
            store_sums<2>(total, stages + STAGES * STAGE + 4 * BM * BN + warp * 2 * PIECE, &C_map, m0 + m_group,
                       n0 + piece * ROW, M, N, alpha, beta, C);
        }
    wait_for_stores<0>();
    meet_cluster(); // no block may end while others read its sums
}
