// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "An even share of the last tiles"
problem = "gemm"
dtypes = ["bf16", "f16"]
arguments = ["M", "N", "K", "alpha", "A_map", "B_map", "beta", "C", "C_map", "partial"]

rung = 684
idea = "Stream-K for what is no whole wave: the k of all tiles but those of the whole waves is dealt out evenly. Who ends a tile that another began leaves its sums in memory, in FP32, where the other adds them to its own."
after = "wgmma_store_panels"
change = "There is no last wave in which SMs idle. Sums of at most one tile a block pass through memory: pipe_lsu_instructions rise."
bottleneck = "The power that tensor cores may draw: with random numbers the clock falls below what it may be."

[moves]
pipe_lsu_instructions = "rises"

[workspace.partial]
shape = ["sm_count", "BM * BN"]
dtype = "f32"

[tensor_maps.A_map]
array = "A"
box = ["BK", "BM"]
swizzle_bytes = 128

[tensor_maps.B_map]
array = "B"
box = ["64", "BK // CLUSTER"]
swizzle_bytes = 128

[tensor_maps.C_map]
array = "C"
box = ["64", "16"]
swizzle_bytes = 128

[launch]
block = [384]
grid = ["min(sm_count // CLUSTER, max(TILES, cdiv(TILES * cdiv(K, BK), LEAST))) * CLUSTER"]
cooperative = true
dynamic_shared_bytes = "128 * (STAGES * (BM + BN) + 2 * BM)"

[constants]
BM = 128 # rows of C per block
BK = 64  # k per tile
TILES = "cdiv(N, BN) * cdiv(M, BM * CLUSTER)" # of C, as many as a cluster has blocks
STAGES = "min(8, (1808 - 2 * BM) // (BM + BN))" # tiles in shared memory, of 226 KiB

[parameters]
BN = 256   # columns of C per block
CLUSTER = 2 # blocks that share columns of B
LEAST = 4  # tiles of k that a block has, unless those of its tile of C are fewer
PANEL = 8  # rows of clusters whose tiles run together

[candidates]
CLUSTER = [1, 2]
LEAST = [2, 4, 8]
BN = [64, 128, 192, 256]
PANEL = [1, 2, 4, 8, 16]

[[require]]
condition = "BN == 64 or BN == 128 or BN == 192 or BN == 256"
because = "{id} has products of 64, 128, 192 and 256 columns"

[[require]]
condition = "CLUSTER == 1 or CLUSTER == 2 or CLUSTER == 4"
because = "{id} shares columns among 1, 2 or 4 blocks"

[[require]]
condition = "LEAST >= 1"
because = "{id} gives each block a tile of k or more"

[[require]]
condition = "sm_count <= 256"
because = "{id} has room to mark the sums of 256 blocks"

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

#define THREADS 384
#define WARPS (BM / 16) // that multiply

#include "store_sums.cuh"

#ifdef PACKED
#include "pack_rows.cuh"
#define C_TARGET
#define TO_PACK , const real *A, const real *B, real *A_packed, real *B_packed
#define STORE_SUMS(...) store_sums_anywhere(sum, pieces, __VA_ARGS__)
#else
#define C_TARGET const __grid_constant__ TensorMap C_map,
#define TO_PACK
#define STORE_SUMS(...) store_sums<2>(sum, pieces, &C_map, &C_map, __VA_ARGS__)
#endif

// Set by each warp that has left its sums of a piece for another block.
static __device__ unsigned written[256 * WARPS];

// A warp's sums to memory for the same warp of another block, and back.
template <int COUNT> static __device__ __forceinline__ void leave_sums(const float (&sum)[COUNT], float4 *partial, int block)
{
    const int warp = block * WARPS + threadIdx.x / 32 - 4;
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < COUNT / 4; ++i)
        partial[(warp * (COUNT / 4) + i) * 32 + lane] = make_float4(sum[4 * i], sum[4 * i + 1], sum[4 * i + 2], sum[4 * i + 3]);
    __syncwarp();
    if (lane == 0)
        raise(&written[warp]);
}
template <int COUNT> static __device__ __forceinline__ void add_sums(float (&sum)[COUNT], const float4 *partial, int block)
{
    const int warp = block * WARPS + threadIdx.x / 32 - 4;
    const int lane = threadIdx.x % 32;
    while (lane == 0 && !is_raised(&written[warp]))
        ;
    __syncwarp();
#pragma unroll
    for (int i = 0; i < COUNT / 4; ++i) {
        const float4 theirs = __ldcg(&partial[(warp * (COUNT / 4) + i) * 32 + lane]);
        sum[4 * i] += theirs.x;
        sum[4 * i + 1] += theirs.y;
        sum[4 * i + 2] += theirs.z;
        sum[4 * i + 3] += theirs.w;
    }
    if (lane == 0)
        written[warp] = 0; // ready for the next launch
}

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
    wgmma_streamk(int M, int N, int K, float alpha, const __grid_constant__ TensorMap A_map,
                  const __grid_constant__ TensorMap B_map, float beta, real *C, C_TARGET float4 *partial TO_PACK)
{
#ifdef PACKED
    pack_rows(M, N, K, A, B, A_packed, B_packed);
#endif
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

    // A cluster's work: first its even share of the tiles that are no whole wave, and of one wave more so that there is
    // enough to share, from one unit of a tile of k to the next; then its tiles of the other waves. The share is walked
    // upwards: what it ends of a tile that another cluster began comes first, and is there when that one needs it.
    const int cluster = blockIdx.x / CLUSTER;
    const int clusters = gridDim.x / CLUSTER;
    const int waves = tiles % clusters == 0 ? tiles / clusters : max(tiles / clusters - 1, 0); // of whole tiles
    const int shared_tiles = tiles - waves * clusters;
    const auto share_begin = [&](int of) { return (int)((long long)shared_tiles * depth * of / clusters); };
    const int first = share_begin(cluster);
    const int share = share_begin(cluster + 1) - first;
    const int work = share + waves * depth; // tiles of k
    const auto find_piece = [&](int done, int &tile, int &begin, int &end) {
        const bool in_share = done < share;
        tile = in_share ? (first + done) / depth : shared_tiles + (done - share) / depth * clusters + cluster;
        begin = in_share ? (first + done) % depth : 0;
        end = in_share ? min(depth, begin + share - done) : depth;
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
    if (warp < 4) {
        // The warpgroup that fetches: one warp of it.
        shrink_to<40>();
        unsigned turn = 0;
        for (int done = 0; warp == 0 && done < work;) {
            int tile, begin, end, m0, n0;
            find_piece(done, tile, begin, end);
            find(tile, m0, n0);
            done += end - begin;
            for (int k0 = begin * BK; k0 < end * BK; k0 += BK, ++turn) {
                const unsigned stage = stages + turn % STAGES * STAGE;
                const unsigned barrier = full + 8 * (turn % STAGES);
                wait(empty + 8 * (turn % STAGES), turn / STAGES % 2 ^ 1); // at once in the first round
                if (elected())
                    fetch_tiles<CLUSTER>(stage, &A_map, &B_map, &B_map, k0, m0, n0, rank, barrier);
            }
        }
    } else {
        // The warpgroups that multiply.
        grow_to<232>();
        const int m_group = (warp / 4 - 1) * 64; // first row of C in the block's tile
        const unsigned pieces = stages + STAGES * STAGE + (t / 32 - 4) * 2 * PIECE;
        const auto release = [&](unsigned turn) {
            if (turn + STAGES < work) // else it will not fill again, and the other block may have ended
                arrive_at_all<CLUSTER>(empty + 8 * (turn % STAGES));
        };
        unsigned turn = 0;
#pragma unroll 1
        for (int done = 0; done < work;) {
            int tile, begin, end;
            find_piece(done, tile, begin, end);
            done += end - begin;
            float sum[BN / 2];
#pragma unroll 1
            for (int k_tile = begin; k_tile < end; ++k_tile, ++turn) {
                wait(full + 8 * (turn % STAGES), turn / STAGES % 2);
                multiply_tiles(sum, stages + turn % STAGES * STAGE, m_group, k_tile > begin);
                // Those of the tile before are done: its stage may fill again.
                wait_for_products<1>();
                if (k_tile > begin)
                    release(turn - 1);
            }
            wait_for_products<0>();
            release(turn - 1);
            if (begin > 0) {
                leave_sums(sum, partial, blockIdx.x);
                continue;
            }
            // Add what the clusters after this one have computed of the tile.
            for (int other = cluster + 1; end < depth; ++other) {
                add_sums(sum, partial, other * CLUSTER + rank);
                end = min(share_begin(other + 1) - tile * depth, depth);
            }
            int m0, n0;
            find(tile, m0, n0);
            STORE_SUMS(m0 + m_group, n0, M, N, alpha, beta, C);
        }
    }
    wait_for_stores<0>();
}
