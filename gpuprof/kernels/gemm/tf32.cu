// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "TF32 by warpgroups"
problem = "gemm"
rung = 696
dtypes = ["tf32"]
idea = "Of TF32 wgmma takes its second operand along k only, which B in rows is not. So C is computed transposed: B's columns are the rows of the first operand, which registers hold in any order, and A lies along k as the second must. A warp fetches, two warpgroups multiply, two blocks share rows of A."
after = "naive"
change = "Tensor cores instead of CUDA cores, and every element comes once for each tile, by the copy engine: no FFMA is left, and far fewer instructions of warps."
bottleneck = "Shared memory: tensor cores read 64 of 128 bytes a cycle, 48 come in, and the warps load 16 of B for their registers."
arguments = ["M", "N", "K", "alpha", "A_map", "B_map", "beta", "C"]

[moves]
warp_instructions = "falls"
ffma_thread_instructions = "falls"

[tensor_maps.A_map]
array = "A"
box = ["BK", "BM // CLUSTER"]
swizzle_bytes = 128

[tensor_maps.B_map]
array = "B"
box = ["BK", "BK"]
swizzle_bytes = 128

[launch]
block = [384]
grid = ["min(sm_count // CLUSTER, cdiv(M, BM) * cdiv(N, BN * CLUSTER)) * CLUSTER"]
dynamic_shared_bytes = "STAGES * BK * (BM + BN) * real_bytes"

[constants]
BM = 256    # rows of C per block
BN = 128    # columns of C per block
BK = 32     # k per tile
CLUSTER = 2 # blocks that share rows of A

[parameters]
STAGES = 4 # tiles in shared memory
PANEL = 8  # rows of tiles of C whose tiles run together

[candidates]
STAGES = [3, 4]
PANEL = [4, 8, 16]

[[require]]
condition = "STAGES >= 2 and PANEL >= 1"
because = "{id} needs two STAGES or more, and a PANEL of one row of tiles or more"

[[require]]
condition = "N % 4 == 0 and K % 4 == 0"
because = "{id} copies 16 bytes at a time: N and K must be multiples of 4"

[[require]]
condition = "90 <= arch < 100"
because = "{id} multiplies by wgmma, which compute capability 9.0 alone has"
*/

#define THREADS BLOCK_X
#define ROW_BYTES 128 // of a tile: BK floats
#define A_BYTES (BM * ROW_BYTES)
#define B_BYTES (BN * ROW_BYTES)
#define STAGE (A_BYTES + B_BYTES)

#include "tma.cuh"
#include "wgmma.cuh"

// 64 columns by 256 rows of C are the products of 8 k, or these are added to them.
static __device__ __forceinline__ void multiply_columns(float (&sum)[128], const float *b, unsigned long long a, bool add)
{
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 "setp.ne.s32 add, %133, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32 {" PLACES_128 "}, {%128, %129, %130, %131}, %132,"
                 " add, 1, 1;\n"
                 "}"
                 : SUMS_128(0)
                 : "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])), "r"(__float_as_uint(b[2])),
                   "r"(__float_as_uint(b[3])), "l"(a), "r"((int)add));
}

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
    tf32(int M, int N, int K, float alpha, const __grid_constant__ TensorMap A_map,
         const __grid_constant__ TensorMap B_map, float beta, float *C)
{
    // Coordinates. Tiles of C, CLUSTER of them side by side, go along a panel of rows, then to the next panel.
    const int t = threadIdx.x;
    const int lane = t % 32;
    const int tiles_m = (M + BM - 1) / BM;
    const int tiles_n = (N + BN * CLUSTER - 1) / (BN * CLUSTER);
    const int tiles = tiles_m * tiles_n;
    const int depth = (K + BK - 1) / BK; // tiles of k
    const int rank = blockIdx.x % CLUSTER;
    const auto find = [&](int tile, int &m0, int &n0) {
        const int panel = tile / (PANEL * tiles_n);
        const int in_panel = tile % (PANEL * tiles_n);
        const int height = min(PANEL, tiles_m - panel * PANEL); // the last panel may be lower
        m0 = (panel * PANEL + in_panel % height) * BM;
        n0 = (in_panel / height * CLUSTER + rank) * BN;
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
            init_barrier(empty + 8 * stage, 8 * CLUSTER);
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
                const int m = rank * (BM / CLUSTER);
                copy_box_to_all<CLUSTER>(stage + m * ROW_BYTES, &A_map, k0, m0 + m, barrier);
                for (int n = 0; n < BN; n += BK)
                    copy_box(stage + A_BYTES + n * ROW_BYTES, &B_map, n0 + n, k0, barrier);
            }
        }
    } else {
        // The warpgroups that multiply: of 64 columns of C each. A lane's columns are such that a warp's loads of B meet
        // no bank twice, as the copy engine permutes 16-byte pieces of a row of B by the row's number.
        grow_to<232>();
        const int box = (t / 128 - 1) * 64 + t % 128 / 64 * 32; // the columns of the warp's box of B
        const int piece = t % 64 / 32 * 2 + lane / 16 * 4;      // of 8 in the box's rows: this one and the next
        const int k_lane = lane % 4;
        const auto release = [&](int turn) {
            if (lane < CLUSTER)
                arrive_at_block(empty + 8 * (turn % STAGES), lane);
        };
        float b[2][BK / 2]; // for each 8 k those of the lane's two columns at k and at k + 4; of two tiles
#pragma unroll 1
        for (int tile = blockIdx.x / CLUSTER; tile < tiles; tile += gridDim.x / CLUSTER) {
            float sum[BM / 2];
            const auto multiply = [&](int k_tile, float (&held)[BK / 2]) {
                wait(full + 8 * (turn % STAGES), turn / STAGES % 2);
                const unsigned a_tile = stages + turn % STAGES * STAGE;
                const unsigned b_tile = a_tile + A_BYTES + box * ROW_BYTES + lane / 4 % 4 * 4;
#pragma unroll
                for (int i = 0; i < BK / 2; ++i) {
                    const int k = i / 4 * 8 + i / 2 % 2 * 4 + k_lane;
                    held[i] = load1(b_tile + k * ROW_BYTES + ((piece + i % 2) ^ k % 8) * 16);
                }
                begin_products();
#pragma unroll
                for (int k = 0; k < BK; k += 8)
                    multiply_columns(sum, held + k / 2, rows_of_k(a_tile + k * 4), k_tile + k > 0);
                close_products();
                // Those of the tile before are done: its stage may fill again.
                wait_for_products<1>();
                if (k_tile > 0)
                    release(turn - 1);
                ++turn;
            };
#pragma unroll 1
            for (int k_tile = 0; k_tile < depth; k_tile += 2) {
                multiply(k_tile, b[0]);
                if (k_tile + 1 < depth)
                    multiply(k_tile + 1, b[1]);
            }
            wait_for_products<0>();
            release(turn - 1);

            // Write back: two rows of C, and two columns four apart, of each eight rows.
            int m0, n0;
            find(tile, m0, n0);
#pragma unroll
            for (int i = 0; i < BM / 2; ++i) {
                const int row = m0 + i / 4 * 8 + k_lane * 2 + i % 2;
                const int column = n0 + box + (piece + i / 2 % 2) * 4 + lane / 4 % 4;
                if (row < M && column < N) {
                    float *c = C + (size_t)row * N + column;
                    *c = beta == 0 ? alpha * sum[i] : alpha * sum[i] + beta * *c;
                }
            }
        }
    }
    meet_cluster(); // no block may end while the other writes to its shared memory
}
