// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "FP32 from three TF32 products of a warpgroup"
problem = "gemm"
rung = 694
idea = "Products by wgmma, of C transposed: B's columns are the rows of its first operand, which registers hold and split, and A lies along K as its second operand must. Four warps fetch, and split A for the others."
after = "tf32x3_mma"
change = "Tensor cores read A from shared memory themselves and are waited for a product later: warp instructions for each product fall, and so do loads from shared memory."
bottleneck = "Shared memory: tensor cores read 64 bytes of A a cycle of the 128 that there are, and its other part is written and read once more to be split."
arguments = ["M", "N", "K", "alpha", "A_map", "B_map", "beta", "C"]

[moves]
warp_instructions = "falls"
shared_load_requests = "falls"

[tensor_maps.A_map]
array = "A"
box = ["BK", "BM"]
swizzle_bytes = 128

[tensor_maps.B_map]
array = "B"
box = ["BK", "BK"]
swizzle_bytes = 128

[launch]
block = [384]
grid = ["cdiv(M, BM) * cdiv(N, BN)"]
dynamic_shared_bytes = "STAGES * BK * (BM + BN) * 4 + 2 * BK * BM * 4"

[constants]
BM = 256   # rows of C per block
BN = 128   # columns of C per block
BK = 32    # k per tile
STAGES = 3 # tiles in shared memory

[parameters]
PANEL = 8 # tiles of C along M that are computed side by side

[candidates]
PANEL = [4, 8, 16]

[[require]]
condition = "N % 4 == 0 and K % 4 == 0"
because = "{id} copies 16 bytes at a time: N and K must be multiples of 4"

[[require]]
condition = "90 <= arch < 100"
because = "{id} multiplies by wgmma, which compute capability 9.0 alone has"
*/

#define THREADS BLOCK_X
#define ROW 128 // bytes of a tile's row: BK floats
#define A_BYTES (BM * ROW)
#define B_BYTES (BN * ROW)
#define STAGE (A_BYTES + B_BYTES)
#define QUARTER 64 // rows of C, columns of its transpose, that one product computes
#define QUARTERS (BM / QUARTER)
#define DEPTH 16   // k of the products that tensor cores add up: sums of more would lose what they truncate

#include "split_tf32.cuh"
#include "tma.cuh"

// A tile whose rows lie along k.
static __device__ __forceinline__ unsigned long long rows_of_k(unsigned address)
{
    return 1ull << 62 | 64ull << 32 | 1ull << 16 | (address & 0x3ffff) >> 4; // 1024 bytes from 8 rows to the next 8
}

// 64 columns by 64 rows of C are the products of 8 k, or these are added to them.
static __device__ __forceinline__ void multiply_add(float (&sum)[32], const unsigned *b, unsigned long long a, bool add)
{
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 "setp.ne.s32 add, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32"
                 " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31},"
                 " {%32, %33, %34, %35}, %36, add, 1, 1;\n"
                 "}"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]), "+f"(sum[4]), "+f"(sum[5]), "+f"(sum[6]),
                   "+f"(sum[7]), "+f"(sum[8]), "+f"(sum[9]), "+f"(sum[10]), "+f"(sum[11]), "+f"(sum[12]),
                   "+f"(sum[13]), "+f"(sum[14]), "+f"(sum[15]), "+f"(sum[16]), "+f"(sum[17]), "+f"(sum[18]),
                   "+f"(sum[19]), "+f"(sum[20]), "+f"(sum[21]), "+f"(sum[22]), "+f"(sum[23]), "+f"(sum[24]),
                   "+f"(sum[25]), "+f"(sum[26]), "+f"(sum[27]), "+f"(sum[28]), "+f"(sum[29]), "+f"(sum[30]),
                   "+f"(sum[31])
                 : "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "l"(a), "r"((int)add));
}
static __device__ __forceinline__ void begin_products()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
static __device__ __forceinline__ void close_products()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int PENDING> static __device__ __forceinline__ void wait_for_products()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    tf32x3(int M, int N, int K, float alpha, const __grid_constant__ TensorMap A_map,
           const __grid_constant__ TensorMap B_map, float beta, float *C)
{
    // Coordinates. Tiles of C go along the columns of a panel of PANEL tile rows, then to the next panel: those that are
    // computed at the same time share rows of A and columns of B in the L2 cache.
    const int t = threadIdx.x;
    const int tiles_m = (M + BM - 1) / BM;
    const int tiles_n = (N + BN - 1) / BN;
    const int panel = blockIdx.x / (PANEL * tiles_n);
    const int in_panel = blockIdx.x % (PANEL * tiles_n);
    const int height = min(PANEL, tiles_m - panel * PANEL); // the last panel may be lower
    const int m0 = (panel * PANEL + in_panel % height) * BM;
    const int n0 = in_panel / height * BN;
    const int tiles = (K + BK - 1) / BK;

    // Shared memory: STAGES tiles of A and of B, and two of what A's numbers lack as TF32. Barriers: a tile has arrived,
    // A's is split, all are done with it.
    extern __shared__ __align__(1024) char shared[];
    __shared__ __align__(8) unsigned long long barriers[STAGES + 4];
    const unsigned stages = (unsigned)__cvta_generic_to_shared(shared);
    const unsigned smalls = stages + STAGES * STAGE;
    const unsigned full = (unsigned)__cvta_generic_to_shared(barriers);
    const unsigned split_up = full + 8 * STAGES;
    const unsigned done = split_up + 16;
    if (t == 0) {
        for (int stage = 0; stage < STAGES; ++stage)
            init_barrier(full + 8 * stage, 1);
        for (int i = 0; i < 2; ++i) {
            init_barrier(split_up + 8 * i, 4);
            init_barrier(done + 8 * i, 8);
        }
        publish_barriers();
    }
    __syncthreads();

    if (t < 128) {
        // The warps that fetch, and split A: the big part of a number is what tensor cores see of it.
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        const auto fetch = [&](int tile) {
            if (t > 0 || tile >= tiles)
                return;
            const unsigned stage = stages + tile % STAGES * STAGE;
            const unsigned barrier = full + 8 * (tile % STAGES);
            expect_bytes(barrier, STAGE);
            copy_box(stage, &A_map, tile * BK, m0, barrier);
            for (int n = 0; n < BN; n += BK)
                copy_box(stage + A_BYTES + n * ROW, &B_map, n0 + n, tile * BK, barrier);
        };
        fetch(0);
        fetch(1);
        for (int tile = 0; tile < tiles; ++tile) {
            // With tile - 2 its small parts and its stage are free.
            if (tile >= 2)
                wait(done + 8 * (tile % 2), tile / 2 % 2 ^ 1);
            if (tile >= 1)
                fetch(tile + 1);
            wait(full + 8 * (tile % STAGES), tile / STAGES % 2);
            const unsigned from = stages + tile % STAGES * STAGE + 16 * t;
            const unsigned to = smalls + tile % 2 * A_BYTES + 16 * t;
#pragma unroll 4
            for (int i = 0; i < A_BYTES; i += 16 * 128)
                store4(to + i, small_parts(load4(from + i)));
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            __syncwarp();
            if (t % 32 == 0)
                arrive_at(split_up + 8 * (tile % 2));
        }
        return;
    }

    // The warpgroups that multiply: of 64 columns of C each. A lane's columns are such that a warp's loads of B meet no
    // bank twice, as the copy engine permutes 16-byte pieces of a row of B by the row's number.
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const int group = t / 128 - 1;
    const int warp = t % 128 / 32;
    const int lane = t % 32;
    const int piece = warp % 2 * 2 + lane / 16 * 4;                    // and the next one, of the box's 8 in a row
    const int n_lane = group * 64 + warp / 2 * 32 + piece * 4 + lane / 4 % 4; // its first column, and the one 4 further
    const unsigned b_lane = (group * 64 + warp / 2 * 32) * ROW + lane / 4 % 4 * 4;
    const int k_lane = lane % 4;

    float sum[QUARTERS][32] = {};
    float part[2][32] = {};
    for (int tile = 0; tile < tiles; ++tile) {
        const unsigned a_tile = stages + tile % STAGES * STAGE;
        const unsigned b_tile = a_tile + A_BYTES + b_lane;
        const unsigned a_small = smalls + tile % 2 * A_BYTES;
        wait(full + 8 * (tile % STAGES), tile / STAGES % 2);
#pragma unroll
        for (int k0 = 0; k0 < BK; k0 += DEPTH) {
            // Load and split B: for each 8 k those of the lane's two columns at k and at k + 4.
            unsigned big[DEPTH / 2], small[DEPTH / 2];
#pragma unroll
            for (int i = 0; i < DEPTH / 2; ++i) {
                const int k = i / 4 * 8 + i / 2 % 2 * 4 + k_lane;
                const float b = load1(b_tile + (k0 + k) * ROW + ((piece + i % 2) ^ k % 8) * 16);
                split(b, big[i], small[i]);
            }
            if (k0 == 0)
                wait(split_up + 8 * (tile % 2), tile / 2 % 2);
            // Multiply a quarter after the other; what tensor cores summed of one is added while they work at the next.
#pragma unroll
            for (int quarter = 0; quarter < QUARTERS; ++quarter) {
                float(&now)[32] = part[quarter % 2];
                begin_products();
#pragma unroll
                for (int k = 0; k < DEPTH; k += 8) {
                    const unsigned at = quarter * QUARTER * ROW + (k0 + k) * 4;
                    multiply_add(now, small + k / 2, rows_of_k(a_tile + at), k > 0);
                    multiply_add(now, big + k / 2, rows_of_k(a_small + at), true);
                    multiply_add(now, big + k / 2, rows_of_k(a_tile + at), true);
                }
                close_products();
                if (quarter > 0) {
                    wait_for_products<1>();
                    add(sum[quarter - 1], part[(quarter - 1) % 2]);
                }
            }
            wait_for_products<0>();
            add(sum[QUARTERS - 1], part[(QUARTERS - 1) % 2]);
        }
        __syncwarp(); // all lanes have loaded B
        if (lane == 0)
            arrive_at(done + 8 * (tile % 2));
    }

    // Write back: two rows of C, and two columns four apart, of each eight rows.
#pragma unroll
    for (int i = 0; i < QUARTERS * 32; ++i) {
        const int row = m0 + i / 4 * 8 + k_lane * 2 + i % 2;
        const int column = n0 + n_lane + i / 2 % 2 * 4;
        if (row < M && column < N) {
            float *c = C + (size_t)row * N + column;
            const float value = alpha * sum[i / 32][i % 32];
            *c = beta == 0 ? value : value + beta * *c;
        }
    }
}
