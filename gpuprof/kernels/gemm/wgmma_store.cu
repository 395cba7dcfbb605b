// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "C written by the copy engine"
problem = "gemm"
dtypes = ["bf16", "f16"]
arguments = ["M", "N", "K", "alpha", "A_map", "B_map", "beta", "C", "C_map"]

[[variants]]
id = "wgmma_store"
rung = 680
idea = "A warp puts 16x64 of its results into shared memory, stmatrix four tiles of 8x8 at a time, and the copy engine writes them to C while the warp goes on with the next ones."
after = "wgmma_multicast"
change = "Whole rows of 128 bytes, and no store by threads: global_store_requests fall to none."
bottleneck = "Tiles that run at the same time lie in few rows of C: each needs columns of B of its own, which come from memory where the L2 cache does not hold them."

[variants.moves]
global_store_requests = "falls"

[[variants]]
id = "wgmma_store_panels"
title = "Tiles in panels"
rung = 682
idea = "Tiles go down the columns of a panel of rows, then to the next panel: those that run at the same time cover a square of C, and share its rows of A and columns of B in the L2 cache."
after = "wgmma_store"
change = "Another order, the same work: counters stay, what comes from memory falls."
bottleneck = "The last wave of tiles, in which some SMs have nothing to do; in large matrices the power that tensor cores may draw."
parameters = { PANEL = 8 }

[variants.moves]
global_store_requests = "stays"

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

[launch]
block = [384]
grid = ["min(sm_count // CLUSTER, cdiv(N, BN) * cdiv(M, BM * CLUSTER)) * CLUSTER"]
dynamic_shared_bytes = "(STAGES * BK * (BM + BN) + 2 * 64 * BM) * real_bytes"

[constants]
BM = 128    # rows of C per block
BK = 64     # k per tile
CLUSTER = 2 # blocks that share columns of B

[parameters]
BN = 256   # columns of C per block
STAGES = 4 # tiles in shared memory
PANEL = 1  # rows of clusters whose tiles run together

[candidates]
BN = [128, 256]
STAGES = [3, 4, 5, 6]
PANEL = [1, 2, 4, 8, 16]

[[require]]
condition = "BN == 128 or BN == 256"
because = "{id} has products of 128 and 256 columns, a half of which each block fetches"

[[require]]
condition = "PANEL >= 1"
because = "{id} needs a PANEL of one row of clusters or more"

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

#define THREADS BLOCK_X
#define A_BYTES (2 * BM * BK)
#define B_BYTES (2 * BK * BN)
#define STAGE (A_BYTES + B_BYTES)
#define PIECE (2 * 16 * ROW) // bytes of C that a warp writes at once: 16 rows

#include "tma.cuh"
#include "wgmma.cuh"

// Write a warpgroup's sums to C, at whose row m and column n the first one belongs, a piece of a warp after the other. Two
// pieces take turns in shared memory: one is filled while the copy engine still reads the other.
template <int COUNT>
static __device__ __forceinline__ void store_sums(const float (&sum)[COUNT], unsigned pieces, const TensorMap *map, int m,
                                                  int n, int M, int N, float alpha, float beta, const real *C)
{
    const int lane = threadIdx.x % 32;
    m += threadIdx.x % 128 / 32 * 16;
#pragma unroll
    for (int j = 0; j < COUNT / 4; j += 8) {
        const unsigned piece = pieces + j / 8 % 2 * PIECE;
        if (lane == 0)
            wait_for_stores<1>();
        __syncwarp();
#pragma unroll
        for (int i = j; i < j + 8; i += 2) {
            unsigned tiles[4]; // rows 0 .. 7 and 8 .. 15 of eight columns, and of the next eight
#pragma unroll
            for (int q = 0; q < 4; ++q) {
                const float *pair = &sum[(i + q / 2) * 4 + q % 2 * 2];
                const int row = m + q % 2 * 8 + lane / 4;
                const int column = n + (i + q / 2) * 8 + lane % 4 * 2;
                tiles[q] = scaled2(pair[0], pair[1], alpha, row < M && column < N ? beta : 0, C + (size_t)row * N + column);
            }
            store_tiles(piece + lane % 16 * 128 + (((i - j + lane / 16) ^ lane % 8) << 4), tiles);
        }
        publish_shared();
        __syncwarp();
        if (lane == 0) {
            store_box(map, n + j * 8, m, piece);
            close_stores();
        }
    }
}

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
    wgmma_store(int M, int N, int K, float alpha, const __grid_constant__ TensorMap A_map,
                    const __grid_constant__ TensorMap B_map, float beta, const real *C,
                    const __grid_constant__ TensorMap C_map)
{
    // Coordinates.
    const int t = threadIdx.x;
    const int lane = t % 32;
    const int tiles_m = (M + BM * CLUSTER - 1) / (BM * CLUSTER); // of C, CLUSTER of them one below the other
    const int tiles_n = (N + BN - 1) / BN;
    const int tiles = tiles_m * tiles_n;
    const int depth = (K + BK - 1) / BK; // tiles of k
    const int rank = blockIdx.x % CLUSTER;
    const auto find = [&](int tile, int &m0, int &n0) {
        const int panel = tile / (PANEL * tiles_n);
        const int in_panel = tile % (PANEL * tiles_n);
        const int height = min(PANEL, tiles_m - panel * PANEL); // the last panel may be lower
        m0 = ((panel * PANEL + in_panel % height) * CLUSTER + rank) * BM;
        n0 = in_panel / height * BN;
    };

    // Shared memory: STAGES tiles of A and of B; for each a barrier that counts the bytes which have arrived, and one
    // that counts the warps of all blocks which are done with it. Behind the tiles two pieces of C for each warp.
    extern __shared__ __align__(1024) char shared[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES];
    const unsigned stages = (unsigned)__cvta_generic_to_shared(shared);
    const unsigned full = (unsigned)__cvta_generic_to_shared(barriers);
    const unsigned empty = full + 8 * STAGES;
    if (t == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            init_barrier(full + 8 * stage, 1);
            init_barrier(empty + 8 * stage, BM / 64 * 4 * CLUSTER);
        }
        publish_barriers();
    }
    meet_cluster();

    // Tiles of k are counted through all tiles of C: `turn` says which stage has one, and for which time.
    if (t < 128) {
        // The warpgroup that fetches: one thread of it.
        shrink_to<40>();
        int turn = 0;
        for (int tile = blockIdx.x / CLUSTER; t == 0 && tile < tiles; tile += gridDim.x / CLUSTER) {
            int m0, n0;
            find(tile, m0, n0);
            for (int k0 = 0; k0 < K; k0 += BK, ++turn) {
                const unsigned stage = stages + turn % STAGES * STAGE;
                const unsigned barrier = full + 8 * (turn % STAGES);
                wait(empty + 8 * (turn % STAGES), turn / STAGES % 2 ^ 1); // at once in the first round
                expect_bytes(barrier, STAGE);
                copy_box(stage, &A_map, k0, m0, barrier);
                for (int n = rank * (BN / CLUSTER); n < (rank + 1) * (BN / CLUSTER); n += ROW)
                    copy_box_to_all<CLUSTER>(stage + A_BYTES + 2 * n * BK, &B_map, n0 + n, k0, barrier);
            }
        }
    } else {
        // The warpgroups that multiply.
        grow_to<232>();
        const int m_group = (t / 128 - 1) * 64; // first row of C in the block's tile
        const unsigned pieces = stages + STAGES * STAGE + (t / 32 - 4) * 2 * PIECE;
        const auto release = [&](int turn) {
            if (lane < CLUSTER)
                arrive_at_block(empty + 8 * (turn % STAGES), lane);
        };
        int turn = 0;
#pragma unroll 1
        for (int tile = blockIdx.x / CLUSTER; tile < tiles; tile += gridDim.x / CLUSTER) {
            float sum[BN / 2];
#pragma unroll 1
            for (int k_tile = 0; k_tile < depth; ++k_tile, ++turn) {
                wait(full + 8 * (turn % STAGES), turn / STAGES % 2);
                const unsigned a_tile = stages + turn % STAGES * STAGE;
                const unsigned b_tile = a_tile + A_BYTES;
                begin_products();
#pragma unroll
                for (int k = 0; k < BK; k += 16)
                    multiply_add(sum, rows_of_k(a_tile + 2 * (m_group * ROW + k)),
                                 rows_of_columns(b_tile + 2 * k * ROW, 2 * BK * ROW), k_tile + k > 0);
                close_products();
                // Those of the tile before are done: its stage may fill again.
                wait_for_products<1>();
                if (k_tile > 0)
                    release(turn - 1);
            }
            wait_for_products<0>();
            release(turn - 1);
            int m0, n0;
            find(tile, m0, n0);
            store_sums(sum, pieces, &C_map, m0 + m_group, n0, M, N, alpha, beta, C);
        }
    }
    wait_for_stores<0>();
    meet_cluster(); // no block may end while the other writes to its shared memory
}
