// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "FP64 tensor cores"
problem = "gemm"
dtypes = ["f64"]

[[variants]]
id = "dmma"
aliases = ["dmma_128x128"]
rung = 640
title = "128x128 tiles on FP64 tensor cores"
idea = "Tensor cores multiply 16 rows by 8 columns in one instruction, mma.sync. A warp holds 64x32 sums, so that each value it loads from shared memory serves 32 or 64 products, and copies of three tiles are under way meanwhile."
after = "reg_2x1"
change = "No DFMA is left in the loop: tensor cores do twice as many multiply-adds per cycle. shared_load_wavefronts fall to a twentieth, and registers rise to hold 64 sums a thread."
bottleneck = "FP64 tensor cores: for 8 k of a warp's tile those of an SM take 128 cycles, in which its shared memory is read for 48 and filled for 20."

[variants.moves]
dfma_thread_instructions = "falls"
shared_load_wavefronts = "falls"
registers_per_thread = "rises"

[[variants]]
id = "dmma_128x64"
rung = 645
shape_of = "dmma"
title = "128x64 tiles on FP64 tensor cores"
idea = "Half the columns, and warps of 32 rows, for a C that tiles of 128x128 leave SMs without: around 1000 there is one for nearly each."
after = "dmma"
change = "Twice as many tiles with half the sums a lane: registers_per_thread fall."
bottleneck = "FP64 tensor cores; in a single wave the first tiles' way from memory."
parameters = { BN = 64, WM = 32 }

[variants.moves]
registers_per_thread = "falls"

[[variants]]
id = "dmma_split"
aliases = ["dmma_64x64", "dmma_64x64_split"]
rung = 650
title = "64x64 tiles on FP64 tensor cores, k split over blocks"
idea = "For a C of few tiles for each SM: the blocks of a cluster share out the k of a tile, and each adds up a part of the sums, which it reads from the others' shared memory. Nobody adds to C there. How many share a tile follows from how many leave least to do for the SM that has most; where clusters of so many find too little room, and k is long, they leave their sums in memory instead, and the last to end adds them up."
after = "dmma"
change = "Tiles of a quarter, and up to eight blocks for each, with a share of k: grid_blocks rise. A tile's sums pass through shared memory once, at the end."
bottleneck = "FP64 tensor cores, of which the last wave of blocks leaves some idle; at small sizes the wait for each block's first tiles."
parameters = { BM = 64, BN = 64, WN = 16, WAYS = 0 }

[variants.moves]
grid_blocks = "rises"

[[variants]]
id = "dmma_split_32x64"
rung = 652
shape_of = "dmma_split"
title = "32x64 tiles on FP64 tensor cores, k split over blocks"
idea = "The same for a C of fewer tiles than SMs: half the rows, and warps of 16 columns."
after = "dmma_split"
change = "Twice as many tiles with half the sums a lane: registers_per_thread fall."
bottleneck = "Memory latency: each block has little k and waits for its first tiles."
parameters = { BM = 32, BN = 64, WM = 32, WN = 16, STAGES = 0, WAYS = 0 }

[variants.moves]
registers_per_thread = "falls"

[[variants]]
id = "dmma_split_64x32"
rung = 653
shape_of = "dmma_split"
title = "64x32 tiles on FP64 tensor cores, k split over blocks"
idea = "As dmma_split_32x64 with half the columns: where C has fewer beyond its last whole tile, and where rows start at odd elements, which are copied one by one: four tiles in shared memory leave room for more blocks then."
after = "dmma_split"
change = "Twice as many tiles with half the sums a lane: registers_per_thread fall."
bottleneck = "Memory latency: each block has little k and waits for its first tiles."
parameters = { BM = 64, BN = 32, WM = 32, WN = 16, STAGES = 0, WAYS = 0 }

[variants.moves]
registers_per_thread = "falls"

[[variants]]
id = "dmma_split_32x32"
aliases = ["dmma_split_four", "dmma_64x64_split_four"]
rung = 655
shape_of = "dmma_split"
title = "32x32 tiles on FP64 tensor cores, k split over warps and blocks"
idea = "The same for a C of few tiles of 32x32 for each SM: two warps share each tile of k, and hide each other's waits. Where k is long, several clusters share a tile of C, and the last to end adds up what all of them left in memory."
after = "dmma_split"
change = "Four times as many tiles: grid_blocks rise once more. Tiles of k are twice as long, so that each thread copies as much of them."
bottleneck = "Memory latency: at 384 a block has twelve tiles of k."
parameters = { BM = 32, BN = 32, WM = 32, WN = 16, BK = 32, WARPS_K = 2, STAGES = 4, WAYS = 0 }

[variants.moves]
grid_blocks = "rises"

[[variants]]
id = "dmma_split_16x16"
rung = 658
shape_of = "dmma_split"
title = "16x16 tiles on FP64 tensor cores, k split over warps and blocks"
idea = "The same for a C of few tiles of 16x16 for each SM: four warps, whose sums of the whole tile meet in shared memory once, and up to 192 k on their way before the first is needed."
after = "dmma_split"
change = "Sixteen times as many tiles, so that at 128 half of all SMs have one and no cluster has to meet: grid_blocks rise."
bottleneck = "Launch and memory latency: up to 256 a block waits for memory once."
parameters = { BM = 16, BN = 16, WM = 16, WN = 16, BK = 64, WARPS_K = 4, WAYS = 0 }

[variants.moves]
grid_blocks = "rises"

[[launches]]
entry = "dmma"
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]
block = ["32 * (BM // WM) * (BN // WN) * WARPS_K"]
grid = ["TILES * CLUSTER * SHARES"]
dynamic_shared_bytes = "max(DEEP * BK * (BM + BN), BM * BN * WARPS_K if CLUSTER * WARPS_K > 1 else 0) * real_bytes"

[constants]
THREADS = "32 * (BM // WM) * (BN // WN) * WARPS_K"
TILES = "cdiv(M, BM) * cdiv(N, BN)"
OF_K = "cdiv(K, BK)" # tiles of k
LEAST = "min((OF_K + (10 if WARPS_K == 1 else 2)) * max(2 * cdiv(TILES, sm_count), 3) * 16 + 1, (max(2, cdiv(OF_K, 2)) + 10) * max(2 * cdiv(2 * TILES, sm_count), 3) * 16 + 2, (max(2, cdiv(OF_K, 4)) + 10) * max(2 * cdiv(4 * TILES, sm_count), 3) * 16 + 4, (max(2, cdiv(OF_K, 8)) + 10) * max(2 * cdiv(8 * TILES, sm_count), 3) * 16 + 8)" # of blocks that share them: what the SM that has most does, and the number. One block takes three where each of two takes two, and to begin as long as ten tiles of k, or two where warps share each
FEW = "WAYS if WAYS else 1 if arch < 90 else (min(LEAST, (max(2, cdiv(OF_K, 3)) + 10) * max(2 * cdiv(3 * TILES, sm_count), 3) * 16 + 3, (max(2, cdiv(OF_K, 5)) + 10) * max(2 * cdiv(5 * TILES, sm_count), 3) * 16 + 5) if K >= 5 * LONG else LEAST) % 16" # the number for which it is done first: clusters of three or five fill no group of SMs, so k must be long enough for memory
FILLED = "sm_count * 9 // 10" # SMs that clusters of more than two find room on: one is within a group of SMs
CLUSTER = "1 if 2 < FEW < 8 and K >= LONG * FEW and TILES * FEW <= 16 * sm_count and cdiv(TILES * FEW, FILLED) > cdiv(TILES * FEW, sm_count) else min(8, FEW)" # of the blocks, those that read each other's sums: none where that room is too little
SHARES = "max(1, FEW // CLUSTER if WAYS or CLUSTER == 1 else 0 if CLUSTER < 8 else min(3 * sm_count // (8 * TILES), K // (192 * BK)))" # clusters of a tile, of which the last to end adds up the sums of all
LEFT = "TILES * SHARES if SHARES > 1 else 0" # sums of tiles that clusters leave in memory
A_WIDTH = "2 if K % 2 == 0 else 1" # elements of A that are copied at once: two where its rows start at multiples of 16 bytes
B_WIDTH = "2 if N % 2 == 0 else 1" # of B, and of C
SUMMED = "cdiv(OF_K, CLUSTER * SHARES)" # tiles of k one after the other
BUSIEST = "cdiv(TILES * CLUSTER * SHARES, FILLED if CLUSTER > 2 else sm_count)" # blocks for the SM that has most, of which a lone one of four warps takes three where each of two takes two: its cycles of products,
CYCLES = "max(2 * BUSIEST, 3 if THREADS < 256 else 2) * SUMMED * BK * BM * BN // 256"
DEEP = "max(3, min(SUMMED + 1, STAGES if STAGES else 4 if A_WIDTH * B_WIDTH < 4 or BUSIEST > 3 and SUMMED <= 24 else 6))" # tiles in shared memory: fewer where k is short, or single elements are copied, and more blocks find room then
RESIDENT = "2 if THREADS == 256 and TILES > sm_count and WM * WN <= 1024 and DEEP * BK * (BM + BN) <= 14336 else 1" # blocks of eight warps that an SM has room for
COPIES = "BUSIEST * SUMMED * BK * (BM // A_WIDTH + BN // B_WIDTH) // 32" # copies by its warps,
WRITES = "BUSIEST * BM * BN // 32 * (2 if SHARES > 1 else 1)" # what they write of C, or leave for it,
JOINS = "CLUSTER * SHARES > 1" # and whether blocks have sums to add up

[parameters]
BM = 128    # rows of C per block
BN = 128    # columns of C per block
WM = 64     # rows of C per warp
WN = 32     # columns of C per warp
BK = 16     # k per tile
WARPS_K = 1 # warps that share the k of a tile
STAGES = 4  # tiles in shared memory, if k has as many; 0: as many as leave room for blocks
DEPTH = 8   # k per instruction, from compute capability 9.0 on; it is 4 before
PANEL = 8   # tile rows whose blocks run together
WAYS = 1    # blocks that share the k of a tile; 0: as many as leave least to do for any SM
LONG = 400  # k of a block from which on its sums pass by way of memory, not a cluster

[candidates]
BM = [16, 32, 64, 128]
BN = [16, 32, 64, 128]
WM = [16, 32, 64]
WN = [16, 32, 64]
BK = [16, 32, 64, 128]
WARPS_K = [1, 2, 4, 8]
STAGES = [0, 3, 4, 6]
DEPTH = [4, 8, 16]
WAYS = [0, 1, 2, 4, 8, 16, 32]

[[require]]
condition = "WM > 0 and WN > 0 and WM % 16 == 0 and WN % 16 == 0 and BM % WM == 0 and BN % WN == 0"
because = "{id} needs warps of a multiple of 16 rows and 16 columns, which divide the block's"

[[require]]
condition = "WM * WN <= 2048"
because = "{id} keeps a warp's sums in registers, which hold WM * WN of at most 2048"

[[require]]
condition = "DEPTH == 4 or DEPTH == 8 or DEPTH == 16"
because = "{id} needs DEPTH 4, 8 or 16"

[[require]]
condition = "WARPS_K > 0 and BK % (16 * WARPS_K) == 0 and BK >= 2 * DEPTH * WARPS_K"
because = "{id} needs BK a multiple of 16 for each of WARPS_K warps, two DEPTH or more: one is multiplied while the next is loaded"

[[require]]
condition = "THREADS % BN == 0 and THREADS % BK == 0 and BM * BK % (2 * THREADS) == 0 and BN * BK % (2 * THREADS) == 0"
because = "{id} copies whole rows by all threads: they must be a multiple of BN and of BK, and half of them may not exceed a tile's values"

[[require]]
condition = "STAGES == 0 or STAGES >= 3"
because = "{id} needs three STAGES or more: one is computed from, one has arrived, one fills"

[[require]]
condition = "PANEL >= 1"
because = "{id} needs a PANEL of one tile row or more"

[[require]]
condition = "WAYS >= 0 and (WAYS <= 8 or WAYS % 8 == 0) and (WAYS <= 1 or arch >= 90)"
because = "{id} has 1 to 8 blocks that share k, or a multiple of 8 (WAYS; 0: as many as fit), and needs compute capability 9.0 for more than one"

[[require]]
condition = "arch >= 80"
because = "{id} needs FP64 tensor cores and cp.async, which come with compute capability 8.0"

[[require]]
condition = "arch == 80 or arch == 87 or 90 <= arch < 120 or DEEP * BK * (BM + BN) * real_bytes <= 101376"
because = "{id} fills more shared memory per block than this compute capability has; with STAGES=3 it does not"
*/

#define WARPS_N (BN / WN)
#define ABREAST (THREADS / WARPS_K)  // threads that have the tile's sums once
#define TILES_M (WM / 16)            // a warp's tile in products of 16 rows
#define TILES_N (WN / 8)             // and 8 columns
#define STEP (DEPTH < 8 ? 8 : DEPTH) // values of k whose operands are loaded together
#define STEPS (BK / WARPS_K / STEP)
#define HELD (STEP / 4)                       // of them, those that one lane holds
#define PAIRS (TILES_M * TILES_N * 2)         // of neighbouring sums of a lane, two for each product
#define PARTS_K (WARPS_K * CLUSTER)           // warps that have sums of the same elements of C
#define OWN ((PAIRS + PARTS_K - 1) / PARTS_K) // pairs that one of them adds up and writes
#define A_STAGE (BM * BK)
#define STAGE (A_STAGE + BK * BN)

// Places in a stage, in elements. A's tile is (row, k) and B's (k, column). Each row's groups of four elements are permuted
// by its number, so that four by four elements, which half a warp reads at once, lie in different banks.
static __device__ __forceinline__ int place_a(int row, int k)
{
    return row * BK + (k ^ (row % 4 * 4));
}
static __device__ __forceinline__ int place_b(int k, int column)
{
    return A_STAGE + k * BN + (column ^ (k % 4 * 4));
}

#include "cp_async.cuh"

// Add the products of 16 rows and 8 columns over STEP values of k. Lane 4 g + t holds of A rows g and g + 8, of B column
// g, of both every fourth k from t on, and of the sums columns 2 t and 2 t + 1 of both rows.
static __device__ __forceinline__ void multiply_add(double (&sum)[4], const double (&a)[HELD][2], const double (&b)[HELD])
{
#if __CUDA_ARCH__ < 900
#pragma unroll
    for (int row = 0; row < 2; ++row)
#pragma unroll
        for (int k = 0; k < HELD; ++k)
            asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                : "+d"(sum[2 * row]), "+d"(sum[2 * row + 1])
                : "d"(a[k][row]), "d"(b[k]));
#elif DEPTH == 4
#pragma unroll
    for (int k = 0; k < HELD; ++k)
        asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
            : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
            : "d"(a[k][0]), "d"(a[k][1]), "d"(b[k]));
#elif DEPTH == 8
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
        : "d"(a[0][0]), "d"(a[0][1]), "d"(a[1][0]), "d"(a[1][1]), "d"(b[0]), "d"(b[1]));
#else
    asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11},"
        " {%12, %13, %14, %15}, {%0, %1, %2, %3};"
        : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
        : "d"(a[0][0]), "d"(a[0][1]), "d"(a[1][0]), "d"(a[1][1]), "d"(a[2][0]), "d"(a[2][1]), "d"(a[3][0]),
          "d"(a[3][1]), "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
#endif
}

#if SHARES > 1
// What each block has summed up of its part of a tile, (tile, part, share, value, thread), and how many have.
#define PART (OWN * 2 * THREADS)
static __device__ double left[LEFT * CLUSTER * PART];
static __device__ unsigned came[LEFT * CLUSTER];
#endif
#if CLUSTER > 1
#include "tma.cuh"
static __device__ __forceinline__ double load_of_block(const double *mine, unsigned rank)
{
    unsigned address;
    double value;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(address)
                 : "r"((unsigned)__cvta_generic_to_shared(mine)), "r"(rank));
    asm volatile("ld.shared::cluster.f64 %0, [%1];" : "=d"(value) : "r"(address) : "memory");
    return value;
}
#else
static __device__ __forceinline__ double load_of_block(const double *mine, unsigned)
{
    return *mine;
}
#endif

#if CLUSTER > 1
#define IN_CLUSTERS __cluster_dims__(CLUSTER, 1, 1)
#else
#define IN_CLUSTERS
#endif
extern "C" __global__ void IN_CLUSTERS __launch_bounds__(THREADS, RESIDENT)
    dmma(int M, int N, int K, double alpha, const double *A, const double *B, double beta, double *C)
{
    // Coordinates, and what this thread copies of each tile.
    const int t = threadIdx.x;
    const int lane_m = t % 32 / 4; // its group's row of A, and column of B
    const int lane_k = t % 4;
    const int slice = WARPS_K == 1 ? 0 : t / ABREAST; // of a tile's k
    const int m_warp = t % ABREAST / 32 / WARPS_N * WM;
    const int n_warp = t / 32 % WARPS_N * WN;

    constexpr int A_ROWS = THREADS / (BK / A_WIDTH);
    constexpr int B_ROWS = THREADS / (BN / B_WIDTH);
    const int depth = (K + BK - 1) / BK;
    const int k_first = K - (depth - 1) * BK;
    const int a_k = t % (BK / A_WIDTH) * A_WIDTH; // this thread copies rows a_m, a_m + A_ROWS, … of A's tile
    const int a_m = t / (BK / A_WIDTH);
    const int b_n = t % (BN / B_WIDTH) * B_WIDTH; // and rows b_k, b_k + B_ROWS, … of B's tile
    const int b_k = t / (BN / B_WIDTH);
    extern __shared__ __align__(16) double shared[];
    const int part = blockIdx.x % (CLUSTER * SHARES);
    const int rank = part % CLUSTER;

    // The k-tiles begin .. end - 1 of the tile of C that starts at (m0, n0).
    const auto compute = [&](int m0, int n0, int begin, int end) {
        // Pointers. Rows of A and columns of B beyond the matrix are zeros in the tiles, and so is what lies beyond K:
        // the first tile takes the odd K % BK, so that no later one needs a check of k.
        const int tiles = end - begin;
        const int k_begin = begin == 0 ? 0 : k_first + (begin - 1) * BK;
        const double *a_source = A + (size_t)(m0 + a_m) * K + k_begin + a_k;
        const double *b_source = B + (size_t)(k_begin + b_k) * N + n0 + b_n;
        const int a_rows = M - m0 - a_m; // rows of A from this thread's first one on
        const bool b_exists = n0 + b_n < N;

        // Start the copies of the next tile, of which `count` values of k exist.
        const auto fetch = [&](double *stage, int count) {
            const double *source = a_source;
#pragma unroll
            for (int i = 0; i < BM / A_ROWS; ++i, source += (size_t)A_ROWS * K) {
                const bool exists = i * A_ROWS < a_rows && a_k < count;
                const int place = A_ROWS % 4 == 0 ? place_a(a_m, a_k) + i * A_ROWS * BK : place_a(a_m + i * A_ROWS, a_k);
                copy<8 * A_WIDTH>(stage + place, source, exists);
            }
            source = b_source;
#pragma unroll
            for (int i = 0; i < BK / B_ROWS; ++i, source += (size_t)B_ROWS * N) {
                const int k = b_k + i * B_ROWS;
                const bool exists = b_exists && k < count;
                copy<8 * B_WIDTH>(stage + place_b(k, b_n), source, exists);
            }
            a_source += count;
            b_source += (size_t)count * N;
        };

        // Operands: of A those of 16 rows and of the next 16, of B those of a step and of the next. Where a lane's first
        // ones lie depends on the permutation; all others lie at constant distances from these.
        double a[2][HELD][2];
        double b[2][TILES_N][HELD];
        int a_first[4];
        int b_first[2];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            a_first[i] = place_a(m_warp + lane_m, i * 4 + lane_k) + slice * (BK / WARPS_K);
#pragma unroll
        for (int i = 0; i < 2; ++i)
            b_first[i] = place_b(lane_k, n_warp + i * 8 + lane_m) + slice * (BK / WARPS_K) * BN;
        const auto load_a = [&](const double *stage, int step, int tile) {
#pragma unroll
            for (int k = 0; k < HELD; ++k) {
                const int fours = step * HELD + k;
#pragma unroll
                for (int half = 0; half < 2; ++half)
                    a[(step * TILES_M + tile) % 2][k][half] =
                        stage[a_first[fours % 4] + fours / 4 * 16 + (tile * 16 + half * 8) * BK];
            }
        };
        const auto load_b = [&](const double *stage, int step, int tile) {
#pragma unroll
            for (int k = 0; k < HELD; ++k)
                b[step % 2][tile][k] = stage[b_first[tile % 2] + tile / 2 * 16 + (step * HELD + k) * 4 * BN];
        };

        // Fill all stages but one, then load the first operands.
        fetch(shared, tiles == 0 ? 0 : begin == 0 ? k_first : BK);
        close_group();
#pragma unroll
        for (int i = 1; i < DEEP - 1; ++i) {
            if (i < tiles)
                fetch(shared + i * STAGE, BK);
            close_group();
        }
        wait_for_groups<DEEP - 2>();
        __syncthreads();
        load_a(shared, 0, 0);
#pragma unroll
        for (int j = 0; j < TILES_N; ++j)
            load_b(shared, 0, j);

        double sum[TILES_M][TILES_N][4] = {};
        int stage = 0;
        int filled = DEEP - 1; // the stage that is filled next
#pragma unroll 1
        for (int tile = 0; tile < tiles; ++tile) {
            const double *now = shared + stage * STAGE;
            const double *next = now;
#pragma unroll
            for (int step = 0; step < STEPS; ++step) {
                const bool last = step == STEPS - 1;
                if (last) {
                    // Sync: the next tile is complete, and nobody reads any more from the one before this.
                    wait_for_groups<DEEP - 3>();
                    __syncthreads();
                    stage = stage + 1 < DEEP ? stage + 1 : 0;
                    if (tile + 1 < tiles) // after the last tile any operands will do
                        next = shared + stage * STAGE;
                }
#pragma unroll
                for (int i = 0; i < TILES_M; ++i) {
                    // Load the operands of the next 16 rows, and a share of the next step's.
                    if (i + 1 < TILES_M)
                        load_a(now, step, i + 1);
                    else
                        load_a(last ? next : now, last ? 0 : step + 1, 0);
#pragma unroll
                    for (int j = i * TILES_N / TILES_M; j < (i + 1) * TILES_N / TILES_M; ++j)
                        load_b(last ? next : now, last ? 0 : step + 1, j);
#pragma unroll
                    for (int j = 0; j < TILES_N; ++j)
                        multiply_add(sum[i][j], a[(step * TILES_M + i) % 2], b[step % 2][j]);
                    // Start the next copies while tensor cores have work.
                    if (last && i == 0) {
                        if (tile + DEEP - 1 < tiles)
                            fetch(shared + filled * STAGE, BK);
                        close_group();
                        filled = filled + 1 < DEEP ? filled + 1 : 0;
                    }
                }
            }
        }

        const auto write = [&](int row, int col, double first, double second) {
            double *c = C + (size_t)row * N + col;
            if (B_WIDTH == 2) {
                if (row >= M || col >= N)
                    return;
                double2 result = make_double2(alpha * first, alpha * second);
                if (beta != 0) {
                    const double2 old = *(const double2 *)c;
                    result = make_double2(result.x + beta * old.x, result.y + beta * old.y);
                }
                *(double2 *)c = result;
            } else if (row < M) {
                if (col < N)
                    c[0] = beta == 0 ? alpha * first : alpha * first + beta * c[0];
                if (col + 1 < N)
                    c[1] = beta == 0 ? alpha * second : alpha * second + beta * c[1];
            }
        };
        const int m_lane = m0 + m_warp + lane_m;
        const int n_lane = n0 + n_warp + lane_k * 2;
#if PARTS_K > 1
        double own[OWN][2] = {};
#else
        auto &own = (double(&)[OWN][2])sum;
#endif
        const auto each_own = [&](auto use) {
#pragma unroll
            for (int i = 0; i < OWN; ++i) {
                const int pair = i * PARTS_K + rank * WARPS_K + slice;
                if (PAIRS % PARTS_K == 0 || pair < PAIRS)
                    use(pair, own[i][0], own[i][1], i * 2);
            }
        };
#if PARTS_K > 1
        // Each warp adds up a share of the pairs, which the others left in their blocks' shared memory.
        __syncthreads();
#pragma unroll
        for (int i = 0; i < PAIRS * 2; ++i)
            shared[i * THREADS + t] = sum[i / 4 / TILES_N][i / 4 % TILES_N][i % 4];
#if CLUSTER > 1
        meet_cluster_in_order();
#else
        __syncthreads();
#endif
        each_own([&](int pair, double &first, double &second, int) {
#pragma unroll
            for (int other = 0; other < PARTS_K; ++other) {
                const double *theirs = shared + pair * 2 * THREADS + (slice + other) % WARPS_K * ABREAST + t % ABREAST;
                const int block = (rank + other / WARPS_K) % CLUSTER;
                first += load_of_block(theirs, block);
                second += load_of_block(theirs + THREADS, block);
            }
            asm volatile("" ::"d"(first), "d"(second)); // here, as who writes nothing may not leave what it reads either
        });
#endif
#if SHARES > 1
        // Of the blocks that have the same part of a tile, one in each cluster, the last to come adds up what all of them left.
        const int place = blockIdx.x / (CLUSTER * SHARES) * CLUSTER + rank;
        double *of_all = left + (size_t)place * SHARES * PART + t;
        each_own([&](int, double first, double second, int i) {
            of_all[part / CLUSTER * PART + i * THREADS] = first;
            of_all[part / CLUSTER * PART + (i + 1) * THREADS] = second;
        });
#if CLUSTER > 1
        meet_cluster(); // no block may end while others read its sums
#endif
        __threadfence();
        __syncthreads();
        const bool is_last = t == 0 && atomicInc(&came[place], SHARES - 1) == SHARES - 1; // and 0 again for the next launch
        if (!__syncthreads_or(is_last)) // a variable in shared memory would move the tiles away from 32 bytes
            return;
        __threadfence();
        each_own([&](int, double &first, double &second, int) { first = second = 0; });
#pragma unroll 1
        for (int share = 0; share < SHARES; ++share, of_all += PART)
            each_own([&](int, double &first, double &second, int i) {
                first += __ldcg(of_all + i * THREADS);
                second += __ldcg(of_all + (i + 1) * THREADS);
            });
#endif
        // Write back, by way of shared memory where rows start anywhere, so that a warp writes neighbours.
#if PARTS_K == 1 && B_WIDTH == 1 && BM * BN <= DEEP * STAGE
        __syncthreads();
        const auto place_c = [](int row, int column) { return row * BN + (column ^ row % 2 * 8); };
        each_own([&](int pair, double first, double second, int) {
            const int row = m_warp + lane_m + pair / 2 / TILES_N * 16 + pair % 2 * 8;
            *(double2 *)&shared[place_c(row, n_warp + lane_k * 2 + pair / 2 % TILES_N * 8)] = make_double2(first, second);
        });
        __syncthreads();
        double *c = C + (size_t)(m0 + t / BN) * N + n0 + t % BN;
        const int rows = n0 + t % BN < N ? M - m0 : 0;
#pragma unroll 8
        for (int row = t / BN; row < min(BM, rows); row += THREADS / BN, c += (size_t)(THREADS / BN) * N) {
            const double sum = alpha * shared[place_c(row, t % BN)];
            *c = beta == 0 ? sum : sum + beta * *c;
        }
#else
        each_own([&](int pair, double first, double second, int) {
            write(m_lane + pair / 2 / TILES_N * 16 + pair % 2 * 8, n_lane + pair / 2 % TILES_N * 8, first, second);
        });
#endif
#if CLUSTER > 1 && SHARES == 1
        meet_cluster(); // as above
#endif
    };

    // Tiles of C go down the columns of a panel of PANEL tile rows, then to the next panel: those that are computed at
    // the same time cover about a square of C, and share its rows of A and columns of B in the L2 cache.
    const int tiles_m = (M + BM - 1) / BM;
    const int tiles_n = (N + BN - 1) / BN;
    const auto compute_tile = [&](int tile, int begin, int end) {
        const int panel = tile / (PANEL * tiles_n);
        const int in_panel = tile % (PANEL * tiles_n);
        const int height = min(PANEL, tiles_m - panel * PANEL); // the last panel may be lower
        compute((panel * PANEL + in_panel % height) * BM, in_panel / height * BN, begin, end);
    };
    constexpr int PARTS_OF_TILE = CLUSTER * SHARES;
    compute_tile(blockIdx.x / PARTS_OF_TILE, part * depth / PARTS_OF_TILE, (part + 1) * depth / PARTS_OF_TILE);
}
