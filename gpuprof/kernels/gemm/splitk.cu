// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "k split over warps"
problem = "gemm"
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]

[[variants]]
id = "splitk"
aliases = ["splitk_32x64"]
rung = 600
title = "32x64 tiles, k split over warps"
idea = "For a C of few tiles: one warp covers a tile of 32x64 with 8x8 outputs per thread, and the eight warps of a block share out k and add their sums at the end."
after = "reg_8x16_pipelined"
change = "Sixteen blocks where reg_8x16_pipelined has one, each with as many threads: the grid fills the GPU, at the price of more async_copy_sectors."
bottleneck = "L2 bandwidth and the wait at each k-tile: a small tile reads its operands often."

[variants.moves]
grid_blocks = "rises"
registers_per_thread = "falls"
async_copy_sectors = "rises"

[[variants]]
id = "splitk_8x32"
rung = 602
shape_of = "splitk"
title = "8x32 tiles, k split over warps"
idea = "For matrices near 128: tiles of 8x32 make enough blocks for the GPU, and the eight warps of a block share out k and add their sums at the end."
after = "reg_8x16_pipelined"
change = "Sixty-four blocks instead of one for a 128x128 C, each with all its operands in flight at once: the grid fills the GPU, at the price of more async_copy_sectors."
bottleneck = "Launch and memory latency: at 128 the arithmetic is a fraction of a microsecond."
parameters = { TM = 2, TN = 4, BK = 128 }

[variants.moves]
grid_blocks = "rises"
theoretical_occupancy_pct = "rises"
registers_per_thread = "falls"
async_copy_sectors = "rises"

[[variants]]
id = "splitk_16x32"
rung = 604
shape_of = "splitk"
title = "16x32 tiles, k split over warps"
idea = "For matrices near 256: splitk_8x32 with twice the rows per thread, while there are still about as many blocks as SMs."
after = "splitk_8x32"
change = "Two thirds of the loaded registers per FMA, and fewer bytes from L2 for each element of C: shared_load_wavefronts and async_copy_sectors fall, and so does the number of blocks."
bottleneck = "Memory latency: each block waits for its first tile, and ends with a sum over its warps."
parameters = { TM = 4, TN = 4, STAGES = 3 }

[variants.moves]
shared_load_wavefronts = "falls"
async_copy_sectors = "falls"
grid_blocks = "falls"

[[variants]]
id = "splitk_fit"
aliases = ["splitk_44x64"]
rung = 606
shape_of = "splitk"
title = "Tiles that fit C, k split over four warps"
idea = "For rows that start anywhere: blocks of four warps hide each other's waits for the copies of four bytes that such rows need, and a tile has as many rows as leave least to do for the SM that has most."
after = "splitk"
change = "More of C per block where it fits, and half the warps that have a sum to add at the end: shared_load_wavefronts and async_copy_sectors fall."
bottleneck = "The copies: one for each element, and each waits for L2."
parameters = { TM = 0, TN = 0, BK = 32, STAGES = 0 }
launch = { block = [128] }

[variants.moves]
shared_load_wavefronts = "falls"
async_copy_sectors = "falls"
grid_blocks = "falls"

[[variants]]
id = "splitk_tall"
rung = 608
shape_of = "splitk"
title = "Taller tiles that fit C"
idea = "For a large C and a K too short for the copy engine's kernels: two or all of a block's four warps have rows of their own, and fewer share k. Where all have, an SM has registers for four blocks, so that one computes while another waits for its tile or writes C."
after = "splitk_fit"
change = "An element that is copied serves more products: async_copy_sectors fall, and so do the sums to add up at the end."
bottleneck = "The copies: one for each element."
parameters = { TM = 0, BK = 0, STAGES = 2, TALL = 0 }
launch = { block = [128] }

[variants.moves]
async_copy_sectors = "falls"

[launch]
block = [256]
any_block = true
grid = ["cdiv(N, BN) * CLUSTER * SHARES", "cdiv(M, BM)"]
dynamic_shared_bytes = "max(DEEP * (BM * (TILE_K + 4) + BN * TILE_K), block_x // (32 * WARPS_M) * BM * (BN + 8)) * real_bytes"

[constants] # a warp's lanes: 4 along M by 8 along N
LANES_M = 4
LANES_N = 8
COLS = "TN if TN else 4 if K <= 97 or cdiv(N, 32) * 5 <= cdiv(N, 64) * 8 else 8" # of C per thread: few where more would lie beyond a narrow C
BN = "LANES_N * COLS" # columns of C per block
TILE_K = "BK if BK else 32 if (K - 1) % 32 > 15 else 16" # k per tile: 32 where no more of the last tile lies beyond K
OF_64 = "cdiv(cdiv(M, 64) * cdiv(N, BN), sm_count) * 64" # rows of C for the SM that has most, where a tile has 64
OF_96 = "cdiv(cdiv(M, 96) * cdiv(N, BN), sm_count) * 96" # and where it has 96
WARPS_M = "TALL if TALL else 2 if OF_64 <= OF_96 <= 192 or K > 64 and TILE_K == 32 and OF_64 * 53 < OF_96 * 50 and OF_64 % 256 == 64 else 4" # that have rows of their own
ROWS = "TM if TM else (4 if OF_64 * 53 < OF_96 * 50 else 6) if WARPS_M == 4 else 8 if WARPS_M == 2 else 11 if cdiv(M, 44) * cdiv(N, BN) <= sm_count else min(cdiv(cdiv(M, 44) * cdiv(N, BN), sm_count) * 1424 + 11, cdiv(cdiv(M, 32) * cdiv(N, BN), sm_count) * (1040 if COLS > 4 else 1152) + 8, cdiv(cdiv(M, 24) * cdiv(N, BN), sm_count) * (784 if COLS > 4 else 816) + 6) % 16" # of C per thread
RESIDENT = "4 if WARPS_M == 4 and ROWS * COLS <= 48 else 1" # blocks that an SM has registers for
BM = "LANES_M * ROWS * WARPS_M" # rows of C per block
DEEP = "STAGES if STAGES else 3 if ROWS > 8 and COLS > 4 else 2" # tiles in flight
TILES = "cdiv(M, BM) * cdiv(N, BN)"
PARTS = "WAYS if WAYS else max(1, min(max(8 * sm_count // (5 * TILES), 4 * (TILES * 17 <= 8 * sm_count)), K // (4 * TILE_K))) if arch >= 90 else 1" # blocks that share the k of a tile: four where an SM then has two at most
CLUSTER = "min(8, PARTS + PARTS // 7)" # of them, those that read each other's sums; seven would leave an eighth of the SMs idle
SHARES = "max(1, PARTS // CLUSTER)" # clusters of a tile, of which the last to end adds up the sums of all
A_WIDTH = "4 if K % 4 == 0 else 2 if K % 2 == 0 else 1" # elements of A that are copied at once: four where its rows start at multiples of 16 bytes, two of 8
B_WIDTH = "4 if N % 4 == 0 else 2 if N % 2 == 0 else 1" # of B, and of C
A_ROW = "K" # elements of a row of A, which the source is compiled for: its copies then lie at constant distances,
B_ROW = "N if B_WIDTH == 1 else 0" # and of B where each element is a copy
FILLED = "sm_count * 10 // 11 if CLUSTER > 2 else sm_count" # SMs that clusters find room on: one is within a group of SMs
BUSIEST = "cdiv(TILES * CLUSTER * SHARES, FILLED)" # blocks for the SM that has most: its cycles of products,
CYCLES = "BUSIEST * cdiv(K, CLUSTER * SHARES) * BM * BN // 128"
COPIES = "BUSIEST * cdiv(K, CLUSTER * SHARES) * (min(BM, M) // A_WIDTH + min(BN, N) // B_WIDTH) // 32" # copies by its warps, none beyond C,
WAITS = "cdiv(cdiv(K, TILE_K), CLUSTER * SHARES)" # tiles of k one after the other,
WRITES = "BUSIEST * BM * BN // 32" # what its warps write of C
JOINS = "CLUSTER > 1" # and whether blocks have sums to add up

[parameters]
TM = 8        # rows of C per thread; 0: as many as fit
TN = 8        # columns of C per thread; 0: 4 where K is short or C is narrow, else 8
BK = 64       # k per tile; 0: 32, or 16 where fewer then lie beyond K
STAGES = 2    # tiles in flight; 0: as the tile needs them
TALL = 1      # warps that have rows of their own, while the others share k; 0: four, or two where an SM has two such blocks at most and no more to do so, or where 64 rows fit better, four such blocks at a time leave one alone, and two have 16 k of each tile
WAYS = 0      # blocks that share the k of a tile; 0: as many as fill the GPU

[candidates]
TM = [0, 1, 2, 4, 6, 8, 11]
TN = [0, 4, 8]
BK = [0, 32, 64, 80, 128, 256]
STAGES = [2, 3, 4]
TALL = [0, 1, 2, 4]
WAYS = [0, 1, 2, 4, 8, 16, 32]
block = [[64], [128], [256], [512]]

[[require]]
condition = "block_x >= 32 and block_x % 32 == 0 and block_y == 1 and block_z == 1"
because = "{id} gives each warp its own k: the block must be whole warps in x"

[[require]]
condition = "ROWS > 0 and TN >= 0 and TN % 4 == 0 and DEEP >= 2 and TILE_K > 0 and WARPS_M > 0 and TILE_K * 8 * WARPS_M % block_x == 0 and block_x % (32 * WARPS_M) == 0"
because = "{id} needs TN a multiple of 4, two STAGES or more, BK a multiple of 4 per warp that shares k, and of TALL warps each an equal number"

[[require]]
condition = "WAYS >= 0 and (WAYS <= 8 or WAYS % 8 == 0) and (WAYS <= 1 or arch >= 90)"
because = "{id} has 1 to 8 blocks that share k, or a multiple of 8 (WAYS; 0: as many as fit), and needs compute capability 9.0 for more than one"

[[require]]
condition = "arch >= 80"
because = "{id} copies with cp.async, which needs compute capability 8.0"
*/

#define THREADS BLOCK_X
#define WARPS (THREADS / 32 / WARPS_M) // each takes its own k
#define WARP_K (TILE_K / WARPS)  // k of a tile that one warp takes
// And of the last tile, of which less may exist. Of a long K that is not worth a branch between products.
#define LAST_K (A_ROW > 9 * TILE_K ? WARP_K : ((A_ROW - 1) % TILE_K / 4 + WARPS) / WARPS * 4)
#define A_PITCH (TILE_K + 4)     // padded: the lanes' rows start in different banks
#define A_STAGE (BM * A_PITCH)
#define B_STAGE (TILE_K * BN)
#define SUM_PITCH (BN + 8) // padded: a warp's partial sums of four rows lie in different banks

#include "cp_async.cuh"
#include "tma.cuh"
#if CLUSTER > 1
static __device__ __forceinline__ float load1_of_block(unsigned address, unsigned rank)
{
    float v;
    asm volatile("{\n"
                 ".reg .b32 theirs;\n"
                 "mapa.shared::cluster.u32 theirs, %1, %2;\n"
                 "ld.shared::cluster.f32 %0, [theirs];\n"
                 "}"
                 : "=f"(v)
                 : "r"(address), "r"(rank)
                 : "memory");
    return v;
}
#endif

// Of C, where they are written at once.
#if B_WIDTH == 4
typedef float4 Vector;
#elif B_WIDTH == 2
typedef float2 Vector;
#else
typedef float Vector;
#endif
union Neighbours {
    Vector all;
    float of[B_WIDTH];
};

#if SHARES > 1
// What each cluster has summed up of its tile, (tile, share, row, column), and how many have.
static __device__ __align__(16) float left[TILES * SHARES * BM * BN];
static __device__ unsigned came[TILES * CLUSTER];
#endif

// Start the copy of a tile of `COUNT` rows of COLUMNS elements, of which `rows` and `columns` exist.
template <int WIDTH, int COUNT, int COLUMNS, int PITCH>
static __device__ __forceinline__ void copy_tile(float *target, const float *source, int pitch, int rows, int columns)
{
    constexpr int ACROSS = COLUMNS / WIDTH; // copies of a row
    const int t = threadIdx.x;
    if constexpr (THREADS % ACROSS == 0) {
        // Each thread has a column of its own. A source that moves on takes fewer registers than one for each row.
        constexpr int STEP = THREADS / ACROSS;
        const int column = t % ACROSS * WIDTH;
        target += t / ACROSS * PITCH + column;
        source += (size_t)(t / ACROSS) * pitch + column;
        rows = column < columns ? rows - t / ACROSS : 0;
#pragma unroll
        for (int row = 0; row < COUNT; row += STEP, source += (size_t)STEP * pitch)
            if (COUNT % STEP == 0 || row + t / ACROSS < COUNT)
                copy<4 * WIDTH>(target + row * PITCH, source, row < rows);
    } else {
#pragma unroll
        for (int start = 0; start < COUNT * ACROSS; start += THREADS) {
            const int row = (start + t) / ACROSS;
            const int column = (start + t) % ACROSS * WIDTH;
            if (COUNT * ACROSS % THREADS == 0 || row < COUNT)
                copy<4 * WIDTH>(target + row * PITCH + column, source + (size_t)row * pitch + column,
                            row < rows && column < columns);
        }
    }
}

#if CLUSTER > 1
#define IN_CLUSTERS __cluster_dims__(CLUSTER, 1, 1)
#else
#define IN_CLUSTERS
#endif
extern "C" __global__ void IN_CLUSTERS __launch_bounds__(THREADS, RESIDENT)
    splitk(int M, int N, int K, real alpha, const real *A, const real *B, real beta, real *C)
{
    K = A_ROW;
    if (B_ROW)
        N = B_ROW;

    // Coordinates. A lane has rows m_thread + i * LANES_M.
    const int t = threadIdx.x;
    const float one = M > 0 ? 1 : 2; // which the compiler does not know
    const int warp = t / 32 / WARPS_M;
    const int m_thread = t / 32 % WARPS_M * (LANES_M * ROWS) + t / 2 % LANES_M;
    const int n_thread = (t % 2 + t % 32 / 8 * 2) * 4; // + 4 * LANES_N per group of columns

    // Shared memory: DEEP tiles in flight, later the warps' partial sums.
    extern __shared__ __align__(16) float shared[];
    float *As = shared;                    // (stage, row of C, k)
    float *Bs = shared + DEEP * A_STAGE; // (stage, k, column of C)

    const int m0 = blockIdx.y * BM;
    const int n0 = blockIdx.x / (CLUSTER * SHARES) * BN;
    const int part = blockIdx.x % (CLUSTER * SHARES);
    const int rank = part % CLUSTER;
    const int first = (K + TILE_K - 1) / TILE_K * part / (CLUSTER * SHARES); // tiles of k of the blocks before
    const int depth = (K + TILE_K - 1) / TILE_K * (part + 1) / (CLUSTER * SHARES) - first;

    // Load one tile, zeros beyond the matrix. Every call closes a group of copies, if only an empty one.
    const auto load = [&](int tile) {
        if (tile < depth) {
            const int stage = tile % DEEP;
            const int k0 = (first + tile) * TILE_K;
            copy_tile<A_WIDTH, BM, TILE_K, A_PITCH>(As + stage * A_STAGE, A + (size_t)m0 * K + k0, K, M - m0, K - k0);
            copy_tile<B_WIDTH, TILE_K, BN, BN>(Bs + stage * B_STAGE, B + (size_t)k0 * N + n0, N, K - k0, N - n0);
        }
        close_group();
    };
#pragma unroll 1
    for (int i = 0; i < DEEP - 1; ++i)
        load(i);

    float sum[ROWS][COLS] = {};
#pragma unroll 1
    for (int tile = 0; tile < depth; ++tile) {
        // Sync: this tile is complete, and nobody reads the stage that is filled next.
        wait_for_groups<DEEP - 2>();
        __syncthreads();
        load(tile + DEEP - 1);

        // Compute this warp's k: four at a time of A, whose rows lie along k.
        const int stage = tile % DEEP;
        const bool is_last = LAST_K < WARP_K && part == CLUSTER * SHARES - 1 && tile == depth - 1;
        const int own_k = warp * (is_last ? LAST_K : WARP_K);
        const float *a_rows = As + stage * A_STAGE + m_thread * A_PITCH + own_k;
        const float *b_rows = Bs + stage * B_STAGE + own_k * BN + n_thread;
#pragma unroll 16
        for (int k0 = 0; k0 < WARP_K; k0 += 4) {
            if (k0 == LAST_K && is_last)
                break;
            float a[ROWS][4];
#pragma unroll
            for (int i = 0; i < ROWS; ++i)
                *(float4 *)a[i] = *(const float4 *)&a_rows[i * LANES_M * A_PITCH + k0];
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                float b[COLS];
#pragma unroll
                for (int j = 0; j < COLS; j += 4)
                    *(float4 *)&b[j] = *(const float4 *)&b_rows[(k0 + k) * BN + j * LANES_N];
#pragma unroll
                // Walk the products like a snake, down the columns where these are long: two neighbours share an operand,
                // which the register file then need not deliver twice.
                for (int step = 0; step < ROWS * COLS; ++step) {
                    constexpr int LENGTH = ROWS < 8 ? COLS : ROWS;
                    const int turn = step / LENGTH;
                    const int place = turn % 2 ? LENGTH - 1 - step % LENGTH : step % LENGTH;
                    const int i = ROWS < 8 ? turn : place;
                    const int j = ROWS < 8 ? place : turn;
                    sum[i][j] += a[i][k] * b[j];
                }
            }
        }
    }

    // Sync, then put the partial sums where the tiles were: (share of k, row, column).
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
#pragma unroll
        for (int j = 0; j < COLS; j += 4)
            // Times one: a sum stored as it is must lie in a row of registers, which the loop pays for.
            *(float4 *)&shared[(warp * BM + m_thread + i * LANES_M) * SUM_PITCH + n_thread + j * LANES_N] =
                make_float4(one * sum[i][j], one * sum[i][j + 1], one * sum[i][j + 2], one * sum[i][j + 3]);
    __syncthreads();

#if CLUSTER > 1
    // Each block adds up its warps' sums where the first one's lie: others then read one sum of it, not one of each warp.
    for (int place = t * 4; place < BM * BN; place += THREADS * 4) {
        float *first = &shared[place / BN * SUM_PITCH + place % BN];
        float4 total = *(const float4 *)first;
#pragma unroll
        for (int w = 1; w < WARPS; ++w) {
            const float4 part = *(const float4 *)(first + w * BM * SUM_PITCH);
            total = make_float4(total.x + part.x, total.y + part.y, total.z + part.z, total.w + part.w);
        }
        *(float4 *)first = total;
    }
    meet_cluster_in_order();
#endif
    // Each thread adds up all warps' sums of B_WIDTH neighbours, of a cluster those of all blocks for its part.
    const auto each_sum = [&](auto use) {
        constexpr int ACROSS = BN / B_WIDTH; // of a row
        if constexpr (CLUSTER == 1 && THREADS % ACROSS == 0) {
            // Each thread has columns of its own, so that where a sum lies follows from where the last one did.
            const int n = t % ACROSS * B_WIDTH;
            const int rows = n0 + n < N ? min(BM, M - m0) : 0;
#pragma unroll 8
            for (int m = t / ACROSS; m < rows; m += THREADS / ACROSS)
                use(m, n);
        } else {
            constexpr int PART = (BM * ACROSS + CLUSTER - 1) / CLUSTER;
#pragma unroll(CLUSTER == 1 ? 4 : 1)
            for (int i = t; i < PART; i += THREADS) {
                const int m = (rank * PART + i) / ACROSS;
                const int n = (rank * PART + i) % ACROSS * B_WIDTH;
                if (m < BM && m0 + m < M && n0 + n < N)
                    use(m, n);
            }
        }
    };
    const auto add_up = [&](int m, int n) {
        Neighbours total = {};
#pragma unroll 16
        for (int w = 0; w < (CLUSTER > 1 ? CLUSTER : WARPS); ++w) {
            Neighbours part;
#if CLUSTER > 1
            const unsigned address = (unsigned)__cvta_generic_to_shared(&shared[m * SUM_PITCH + n]);
            if constexpr (B_WIDTH == 4)
                *(float4 *)part.of = load_of_block(address, w);
            else
#pragma unroll
                for (int q = 0; q < B_WIDTH; ++q)
                    part.of[q] = load1_of_block(address + 4 * q, w);
#else
            part.all = *(const Vector *)&shared[(w * BM + m) * SUM_PITCH + n];
#endif
#pragma unroll
            for (int q = 0; q < B_WIDTH; ++q)
                total.of[q] += part.of[q];
        }
        return total;
    };
    const auto write = [&](Neighbours total, int m, int n) {
        Vector *c = (Vector *)&C[(size_t)(m0 + m) * N + n0 + n];
        Neighbours old = {};
        if (beta != 0)
            old.all = *c;
#pragma unroll
        for (int q = 0; q < B_WIDTH; ++q)
            total.of[q] = beta == 0 ? alpha * total.of[q] : alpha * total.of[q] + beta * old.of[q];
        *c = total.all;
    };
#if SHARES == 1
    each_sum([&](int m, int n) { write(add_up(m, n), m, n); });
#else
    // Of the blocks that have the same part of a tile, one in each cluster, the last to come adds up what all of them left.
    const int tile = blockIdx.y * (gridDim.x / (CLUSTER * SHARES)) + blockIdx.x / (CLUSTER * SHARES);
    float *of_tile = left + (size_t)tile * SHARES * BM * BN;
    each_sum([&](int m, int n) {
        *(Vector *)&of_tile[(part / CLUSTER * BM + m) * BN + n] = add_up(m, n).all;
    });
    __threadfence();
    __syncthreads();
    const bool is_last = t == 0 && atomicInc(&came[tile * CLUSTER + rank], SHARES - 1) == SHARES - 1; // and 0 again for the next launch
    if (__syncthreads_or(is_last)) { // a variable in shared memory would move the tiles away from 32 bytes
        __threadfence();
        each_sum([&](int m, int n) {
            Neighbours total = {};
#pragma unroll 8
            for (int share = 0; share < SHARES; ++share) {
                const float *theirs = of_tile + (share * BM + m) * BN + n;
                Neighbours part;
                part.all = __ldcg((const Vector *)theirs);
#pragma unroll
                for (int q = 0; q < B_WIDTH; ++q)
                    total.of[q] += part.of[q];
            }
            write(total, m, n);
        });
    }
#endif
#if CLUSTER > 1
    meet_cluster(); // no block may end while others read its sums
#endif
}
