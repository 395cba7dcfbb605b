// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "C written by the copy engine"
problem = "gemm"
dtypes = ["bf16", "f16"]

[[variants]]
id = "wgmma_store"
rung = 680
idea = "A warp puts 16x64 of its results into shared memory, stmatrix four tiles of 8x8 at a time, and the copy engine writes them to C while the warp goes on with the next ones."
after = "wgmma_multicast"
change = "Whole rows of 128 bytes, and no store by threads: pipe_lsu_instructions fall."
bottleneck = "Tiles that run at the same time lie in few rows of C: each needs columns of B of its own, which come from memory where the L2 cache does not hold them."

[variants.moves]
pipe_lsu_instructions = "falls"
shared_bytes = "rises"

[[variants]]
id = "wgmma_store_panels"
title = "Tiles in panels"
rung = 682
idea = "Tiles go down the columns of a panel of rows, then to the next panel: those that run at the same time cover a square of C, and share its rows of A and columns of B in the L2 cache."
after = "wgmma_store"
change = "Another order, the same work: what threads do stays, dram_read_bytes fall, at 8192 by half."
bottleneck = "The last wave of tiles, in which some SMs have nothing to do; in large matrices the power that tensor cores may draw."
parameters = { PANEL = 8 }

[variants.moves]
pipe_lsu_instructions = "stays"
dram_read_bytes = "falls"

[[variants]]
id = "wgmma_store_fit"
rung = 683
shape_of = "wgmma_store_panels"
title = "Tiles as wide as fills the waves"
idea = "Tensor cores take any multiple of 16 columns. So that as many tiles as there are SMs fill the last wave too, they are as narrow as the number of waves allows."
after = "wgmma_store_panels"
change = "More tiles of fewer columns, and as many waves: grid_blocks rise where one wave had room."
bottleneck = "Shared memory, which narrower tiles fill and read for as long as tensor cores multiply."
parameters = { PANEL = 8, GRAIN = 32 }

[variants.moves]
pipe_tensor_instructions = "rises"

[[variants]]
id = "wgmma_store_64"
rung = 683.5
shape_of = "wgmma_store_panels"
title = "64 rows, as wide as fills the waves"
idea = "For a C of few tiles: one warpgroup that multiplies, so that there are twice as many blocks."
after = "wgmma_store_fit"
change = "Half of the tile: block_threads fall."
bottleneck = "Latency: launch, the first tiles, and the way back for C."
parameters = { BM = 64, CLUSTER = 1, PANEL = 4, GRAIN = 64 }

[variants.moves]
block_threads = "falls"

[[variants]]
id = "wgmma_store_192"
rung = 683.7
shape_of = "wgmma_store_panels"
title = "192 rows, as wide as fills the waves"
idea = "Three warpgroups that multiply: where tiles of 128 rows begin another wave, as at 2056, those of 192 need not."
after = "wgmma_store_fit"
change = "Another split of C: block_threads rise. Each element of B is read three times from shared memory for one that is fetched."
bottleneck = "Shared memory, from which three warpgroups read the same columns of B."
parameters = { BM = 192, WIDEST = 192, GRAIN = 32, PIECES = 1, PANEL = 8 }

[variants.moves]
block_threads = "rises"

[tensor_maps.A_map]
array = "A"
box = ["BK", "A_ROWS"]
swizzle_bytes = 128

[tensor_maps.B_map]
array = "B"
box = ["64", "BK // CLUSTER"]
swizzle_bytes = 128

[tensor_maps.C_map]
array = "C"
box = ["64", "16"]
swizzle_bytes = 128

[[launches]]
entry = "wgmma_store"
arguments = ["M", "N", "K", "alpha", "A_map", "B_map", "beta", "C", "C_map"]
block = ["128 + 2 * BM"]
grid = ["min(sm_count // CLUSTER, cdiv(N, BN) * cdiv(M, BM * CLUSTER)) * CLUSTER"]
dynamic_shared_bytes = "128 * (STAGES * (BM + cdiv(BN, 64) * 64) + PIECES * BM)"

[constants]
A_ROWS = "min(BM, cdiv(M, 8) * 8)" # of a tile of A that are fetched: zeros in the place of others would take as long as rows
BK = 64 # k per tile
ROWS = "cdiv(M, BM * CLUSTER)" # of clusters
ACROSS = "cdiv(ROWS * cdiv(N, WIDEST), sm_count // CLUSTER) * (sm_count // CLUSTER) // ROWS" # tiles in a row, in no more waves
BN = "max(64, GRAIN * cdiv(N, GRAIN * ACROSS)) if GRAIN else WIDEST" # columns of C per block
STAGES = "min(8, (1808 - PIECES * BM) // (BM + cdiv(BN, 64) * 64))" # tiles in shared memory, of 226 KiB

[parameters]
BM = 128     # rows of C per block
WIDEST = 256 # most columns of C per block
GRAIN = 0    # by so many fewer where that fills the last wave; 0 for never
PIECES = 2   # of C in shared memory, for each warp
CLUSTER = 2  # blocks that share columns of B
PANEL = 1    # rows of clusters whose tiles run together

[candidates]
PIECES = [1, 2, 4]
BM = [64, 128, 192]
CLUSTER = [1, 2, 4]
WIDEST = [64, 96, 128, 160, 192, 224, 256]
GRAIN = [0, 16, 32, 64]
PANEL = [1, 2, 4, 8, 16]

[[require]]
condition = "BM == 64 or BM == 128 or BM == 192 and WIDEST <= 192"
because = "{id} has room for the sums of one warpgroup of 64 rows or of two, or of three with 192 columns"

[[require]]
condition = "PIECES >= 1"
because = "{id} writes C by way of one piece in shared memory or more"

[[require]]
condition = "CLUSTER == 1 or CLUSTER == 2 or CLUSTER == 4"
because = "{id} shares columns among 1, 2 or 4 blocks"

[[require]]
condition = "WIDEST >= 64 and WIDEST <= 256 and WIDEST % max(16, GRAIN) == 0 and GRAIN % 16 == 0"
because = "{id} has products of 64, 80, 96, … 256 columns"

[[require]]
condition = "PANEL >= 1"
because = "{id} needs a PANEL of one row of clusters or more"

[[require]]
condition = "N % 8 == 0 and K % 8 == 0"
because = "{id} copies 16 bytes at a time: N and K must be multiples of 8"

[[require]]
condition = "90 <= arch < 100"
because = "{id} multiplies by wgmma, which compute capability 9.0 alone has"
*/

#define THREADS (128 + 2 * BM)

#include "store_sums.cuh"

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
    wgmma_store(int M, int N, int K, float alpha, const __grid_constant__ TensorMap A_map,
                    const __grid_constant__ TensorMap B_map, float beta, real *C,
                    const __grid_constant__ TensorMap C_map)
{
    // Coordinates.
    const int t = threadIdx.x;
    const int warp = of_warp(t / 32);
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
    // that counts the warps of all blocks which are done with it. Behind the tiles PIECES of C for each warp.
    extern __shared__ __align__(1024) char shared[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES];
    const unsigned stages = (unsigned)__cvta_generic_to_shared(shared);
    const unsigned full = (unsigned)__cvta_generic_to_shared(barriers);
    const unsigned empty = full + 8 * STAGES;
    const auto meet = [] {
        if (CLUSTER > 1)
            meet_cluster();
        else
            __syncthreads();
    };
    if (t == 0) {
        prefetch(&A_map);
        prefetch(&B_map);
        for (int stage = 0; stage < STAGES; ++stage) {
            init_barrier(full + 8 * stage, 1);
            init_barrier(empty + 8 * stage, BM / 64 * 4 * CLUSTER);
        }
        publish_barriers();
    }
    meet();

    // Tiles of k are counted through all tiles of C: `turn` says which stage has one, and for which time.
    if (warp < 4) {
        // The warpgroup that fetches: one warp of it.
        if (BM > 64)
            shrink_to<BM == 128 ? 40 : 32>();
        unsigned turn = 0;
        for (int tile = blockIdx.x / CLUSTER; warp == 0 && tile < tiles; tile += gridDim.x / CLUSTER) {
            int m0, n0;
            find(tile, m0, n0);
            for (int k0 = 0; k0 < K; k0 += BK, ++turn) {
                const unsigned stage = stages + turn % STAGES * STAGE;
                const unsigned barrier = full + 8 * (turn % STAGES);
                wait(empty + 8 * (turn % STAGES), turn / STAGES % 2 ^ 1); // at once in the first round
                if (elected())
                    fetch_tiles<CLUSTER>(stage, &A_map, &B_map, k0, m0, n0, rank, barrier);
            }
        }
    } else {
        // The warpgroups that multiply.
        if (BM > 64) // a single one has registers enough
            grow_to<BM == 128 ? 232 : 160>();
        const int m_group = (warp / 4 - 1) * 64; // first row of C in the block's tile
        const unsigned pieces = stages + STAGES * STAGE + (warp - 4) * PIECES * PIECE;
        const auto release = [&](unsigned turn) { arrive_at_all<CLUSTER>(empty + 8 * (turn % STAGES)); };
        unsigned turn = 0;
#pragma unroll 1
        for (int tile = blockIdx.x / CLUSTER; tile < tiles; tile += gridDim.x / CLUSTER) {
            int m0, n0;
            find(tile, m0, n0);
            float sum[BN / 2];
#pragma unroll 1
            for (int k_tile = 0; k_tile < depth; ++k_tile, ++turn) {
                wait(full + 8 * (turn % STAGES), turn / STAGES % 2);
                multiply_tiles(sum, stages + turn % STAGES * STAGE, m_group, k_tile > 0);
                // Those of the tile before are done: its stage may fill again.
                wait_for_products<1>();
                if (k_tile > 0)
                    release(turn - 1);
            }
            wait_for_products<0>();
            release(turn - 1);
            store_sums<PIECES>(sum, pieces, &C_map, m0 + m_group, n0, M, N, alpha, beta, C);
        }
    }
    wait_for_stores<0>();
    meet(); // no block may end while the other writes to its shared memory
}
