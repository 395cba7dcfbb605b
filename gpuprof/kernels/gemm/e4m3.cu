// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "8-bit floats by warpgroups"
problem = "gemm"
rung = 698
dtypes = ["e4m3"]
layout = "tn"
idea = "A byte a number: a row of 128 bytes holds 128 k, and one instruction multiplies 32 of them where it multiplied 16 halves. Of 8-bit floats wgmma takes operands along k only, so A lies in rows and B in columns. A warp fetches, two warpgroups multiply, two blocks share the columns of B."
change = "The first rung of 8-bit floats, which tensor cores multiply as they are; of the fraction of their sums they keep 13 bits."
bottleneck = "Shared memory, from which tensor cores read 80 of 128 bytes a cycle while 48 come in; in large matrices the power that tensor cores may draw."
arguments = ["M", "N", "K", "alpha", "A_map", "B_map", "beta", "C"]

[tensor_maps.A_map]
array = "A"
box = ["BK", "BM"]
swizzle_bytes = 128

[tensor_maps.B_map]
array = "B"
box = ["BK", "BN // CLUSTER"]
swizzle_bytes = 128

[launch]
block = [384]
grid = ["min(sm_count // CLUSTER, cdiv(N, BN) * cdiv(M, BM * CLUSTER)) * CLUSTER"]
dynamic_shared_bytes = "STAGES * BK * (BM + BN)"

[constants]
BM = 128    # rows of C per block
BN = 256    # columns of C per block
BK = 128    # k per tile
CLUSTER = 2 # blocks that share columns of B

[parameters]
STAGES = 4 # tiles in shared memory
PANEL = 4  # rows of clusters whose tiles run together

[candidates]
STAGES = [3, 4]
PANEL = [2, 4, 8]

[[require]]
condition = "STAGES >= 2 and PANEL >= 1"
because = "{id} needs two STAGES or more, and a PANEL of one row of clusters or more"

[[require]]
condition = "N % 2 == 0 and K % 16 == 0"
because = "{id} copies 16 bytes at a time and writes two elements of C: K must be a multiple of 16, and N even"

[[require]]
condition = "90 <= arch < 100"
because = "{id} multiplies by wgmma, which compute capability 9.0 alone has"
*/

#define THREADS BLOCK_X
#define A_BYTES (BM * BK)
#define B_BYTES (BK * BN)
#define STAGE (A_BYTES + B_BYTES)

// Of the run's type are A and B alone, which only the copy engine and tensor cores see: C's is what threads write.
#include <cuda_bf16.h>
#undef real
#define real __nv_bfloat16
#include "tma.cuh"
#include "wgmma.cuh"

// 64 rows by 256 columns of sums are the products of 32 k of A and of B, both along k, or these are added to them.
static __device__ __forceinline__ void multiply_bytes(float (&sum)[128], unsigned long long a, unsigned long long b,
                                                      bool add)
{
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 "setp.ne.s32 add, %130, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e4m3 {" PLACES_128 "}, %128, %129, add, 1, 1;\n"
                 "}"
                 : SUMS_128(0)
                 : "l"(a), "l"(b), "r"((int)add));
}

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
    e4m3(int M, int N, int K, float alpha, const __grid_constant__ TensorMap A_map,
         const __grid_constant__ TensorMap B_map, float beta, __nv_bfloat16 *C)
{
    // Coordinates. Tiles of C, CLUSTER of them one below the other, go down the columns of a panel, then to the next.
    const int t = threadIdx.x;
    const int lane = t % 32;
    const int tiles_m = (M + BM * CLUSTER - 1) / (BM * CLUSTER);
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
    // that counts the warps of all blocks which are done with it.
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
    int turn = 0;
    if (t < 128) {
        // The warpgroup that fetches: one thread of it.
        shrink_to<40>();
        for (int tile = blockIdx.x / CLUSTER; t == 0 && tile < tiles; tile += gridDim.x / CLUSTER) {
            int m0, n0;
            find(tile, m0, n0);
            for (int k0 = 0; k0 < K; k0 += BK, ++turn) {
                const unsigned stage = stages + turn % STAGES * STAGE;
                const unsigned barrier = full + 8 * (turn % STAGES);
                wait(empty + 8 * (turn % STAGES), turn / STAGES % 2 ^ 1); // at once in the first round
                expect_bytes(barrier, STAGE);
                copy_box(stage, &A_map, k0, m0, barrier);
                const int n = rank * (BN / CLUSTER);
                copy_box_to_all<CLUSTER>(stage + A_BYTES + n * BK, &B_map, k0, n0 + n, barrier);
            }
        }
    } else {
        // The warpgroups that multiply.
        grow_to<232>();
        const int m_group = (t / 128 - 1) * 64; // first row of C in the block's tile
        const auto release = [&](int turn) {
            if (lane < CLUSTER)
                arrive_at_block(empty + 8 * (turn % STAGES), lane);
        };
#pragma unroll 1
        for (int tile = blockIdx.x / CLUSTER; tile < tiles; tile += gridDim.x / CLUSTER) {
            float sum[BN / 2];
#pragma unroll 1
            for (int k_tile = 0; k_tile < depth; ++k_tile, ++turn) {
                wait(full + 8 * (turn % STAGES), turn / STAGES % 2);
                const unsigned a_tile = stages + turn % STAGES * STAGE + m_group * BK;
                const unsigned b_tile = stages + turn % STAGES * STAGE + A_BYTES;
                begin_products();
#pragma unroll
                for (int k = 0; k < BK; k += 32)
                    multiply_bytes(sum, rows_of_k(a_tile + k), rows_of_k(b_tile + k), k_tile + k > 0);
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
            write_sums(sum, m0 + m_group, n0, M, N, alpha, beta, C);
        }
    }
    meet_cluster(); // no block may end while the other writes to its shared memory
}
