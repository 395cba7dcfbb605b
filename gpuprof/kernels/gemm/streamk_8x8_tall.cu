// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Tall tiles, an even share"
problem = "gemm"
rung = 568
idea = "Stream-K for C of few columns: tiles of 256x64. At 4096x64x4096 those of 128x128 compute twice what C has. Whoever has the first k of a tile writes it, the others wait for that and add to it."
after = "streamk_8x8_square"
shape_of = "streamk_12x16"
change = "A tile's other shape; three stages instead of four, because more of a stage is A, of which it holds two copies. ffma_thread_instructions stay where both shapes fit."
bottleneck = "That of streamk_8x8."
entry = "streamk_8x8_tall"
arguments = ["M", "N", "K", "alpha", "A_map", "B_map", "beta", "C"]

[moves]
ffma_thread_instructions = "stays"

[tensor_maps.A_map]
array = "A"
box = ["BK", "BM"]
swizzle_bytes = 64

[tensor_maps.B_map]
array = "B"
box = ["BN", "BK"]

[launch]
block = [256]
grid = ["min(sm_count * SM_BLOCKS, cdiv(M, BM) * cdiv(N, BN) * cdiv(K, BK))"]
dynamic_shared_bytes = "STAGES * BK * (2 * BM + BN) * real_bytes"
cooperative = true

[constants]
BM = 256 # rows of C per block
BN = 64  # columns of C per block
BK = 16  # k per tile

[parameters]
STAGES = 3
SM_BLOCKS = 2 # blocks to an SM

[candidates]
STAGES = [3, 4]
SM_BLOCKS = [1, 2]

[[require]]
condition = "N % 4 == 0 and K % 4 == 0"
because = "{id} copies 16 bytes at a time: N and K must be multiples of 4"

[[require]]
condition = "STAGES >= 3"
because = "{id} needs three STAGES or more: one is computed from, one is turned, one fills"

[[require]]
condition = "N <= 192 and 4 * N <= M"
because = "{id} has tiles of 256x64 for a tall C of 192 columns at most"

[[require]]
condition = "SM_BLOCKS > 0 and sm_count * SM_BLOCKS <= 1024"
because = "{id} has room to mark the tiles of 1024 blocks"

[[require]]
condition = "arch >= 90"
because = "{id} uses bulk copies, which need compute capability 9.0"

[[require]]
condition = "arch < 120"
because = "{id} fills 192 KiB of shared memory per SM, more than compute capability 12 has"
*/

#define THREADS BLOCK_X
#define WARPS (THREADS / 32)
#define TM 8         // rows of C per thread
#define TN 8         // columns of C per thread
#define LANES_M 8    // a warp's lanes: 8 along M by 4 along N
#define LANES_N 4
#define WARPS_N (BN / (LANES_N * TN))
#define STEP 2       // values of k between two turns of the inner loop, which leave some of a tile's
#define CHUNKS (BK / 4)
#define TURNS (BM / 32 * CHUNKS / WARPS)   // pieces of A's tile, 32 rows by 4 k, that each warp turns
#define TURN_ROWS (WARPS / CHUNKS * 32)    // rows from one of a warp's pieces to its next
#define A_BYTES (BM * BK * 4)
#define B_BYTES (BN * BK * 4)
#define TURNED A_BYTES                     // a stage holds A as it arrived, A turned, and B
#define STAGE_BYTES (2 * A_BYTES + B_BYTES)

struct __align__(64) TensorMap {
    unsigned long long opaque[16];
};

// Shared memory is addressed by its 32-bit offsets, as the copy engine wants them.
static __device__ __forceinline__ float4 load4(unsigned address)
{
    float4 v;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(address)
                 : "memory");
    return v;
}
static __device__ __forceinline__ void store(unsigned address, float value)
{
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(address), "f"(value) : "memory");
}
// Wait until a barrier's phase of this parity is over.
static __device__ __forceinline__ void wait(unsigned barrier, int parity)
{
    asm volatile("{\n"
                 ".reg .pred over;\n"
                 "again: mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n"
                 "@!over bra again;\n"
                 "}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}
static __device__ __forceinline__ void copy_box(unsigned target, const TensorMap *map, int column, int row,
                                                unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%2, %3}], [%4];" ::"r"(target),
                 "l"(map), "r"(column), "r"(row), "r"(barrier)
                 : "memory");
}
// Add to four neighbours in global memory, without waiting for them.
static __device__ __forceinline__ void add4(float4 *target, float4 v)
{
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(target), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
                 : "memory");
}

// Set by each block once it has begun a tile that others go on with: how many of them have not seen it yet.
static __device__ unsigned written[1024];

extern "C" __global__ void __launch_bounds__(THREADS, SM_BLOCKS)
    streamk_8x8_tall(int M, int N, int K, float alpha, const __grid_constant__ TensorMap A_map,
                const __grid_constant__ TensorMap B_map, float beta, float *C)
{
    // Coordinates. A lane's rows and columns come in groups of four neighbours; the groups of a warp interleave.
    const int t = threadIdx.x;
    const int lane = t % 32;
    const int warp = t / 32;
    const int lane_n = lane / 2 % LANES_N;
    const int lane_m = lane % 2 + lane / 8 * 2;
    const int m_thread = warp / WARPS_N * LANES_M * TM + lane_m * 4; // + 4 * LANES_M per group of rows
    const int n_thread = warp % WARPS_N * LANES_N * TN + lane_n * 4; // + 4 * LANES_N per group of columns

    // This block's share: of all k-tiles of all tiles of C, one after the other, as many as every other block's. It
    // is walked piece by piece, a piece being what lies in one tile of C, and the last piece comes first.
    const int tiles_n = (N + BN - 1) / BN;
    const int depth = (K + BK - 1) / BK;
    const long long total = (long long)((M + BM - 1) / BM) * tiles_n * depth;
    const int first = (int)(total * blockIdx.x / gridDim.x);
    const int last = (int)(total * (blockIdx.x + 1) / gridDim.x);
    const int tiles = last - first;
    const auto piece_before = [&](int end) { return max(first, (end - 1) / depth * depth); };
    const auto block_of = [&](int k_tile) { return (int)(((k_tile + 1LL) * gridDim.x - 1) / total); };

    // Shared memory: STAGES stages; for each a barrier that counts the bytes which have arrived, and one for all
    // that counts the threads which have turned their pieces of A.
    extern __shared__ __align__(1024) char shared[];
    __shared__ __align__(8) unsigned long long barriers[STAGES + 1];
    const unsigned stages = (unsigned)__cvta_generic_to_shared(shared);
    const unsigned arrived = (unsigned)__cvta_generic_to_shared(barriers);
    const unsigned turned = arrived + 8 * STAGES;
    if (t == 0) {
        for (int stage = 0; stage < STAGES; ++stage)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(arrived + 8 * stage) : "memory");
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(turned), "r"(THREADS) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();

    // Fetch the share's next k-tile: one thread tells the barrier what to expect and starts two copies. The warps take
    // turns at it, so that none falls behind. All threads keep count, which costs them nothing: the numbers are the
    // same in a whole warp.
    int fetched_to = last; // where the piece begins that was begun last
    int left = 0;          // k-tiles of it that are still to be fetched
    int next_k = 0;
    int next_m = 0;
    int next_n = 0;
    const auto fetch = [&](int tile) {
        if (left == 0) {
            const int begin = piece_before(fetched_to);
            left = fetched_to - begin;
            fetched_to = begin;
            next_k = begin % depth * BK;
            next_m = begin / depth / tiles_n * BM;
            next_n = begin / depth % tiles_n * BN;
        }
        if (t == tile % WARPS * 32) {
            const unsigned barrier = arrived + 8 * (tile % STAGES);
            const unsigned stage = stages + tile % STAGES * STAGE_BYTES;
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                         "r"(A_BYTES + B_BYTES)
                         : "memory");
            copy_box(stage, &A_map, next_k, next_m, barrier);
            copy_box(stage + 2 * A_BYTES, &B_map, next_n, next_k, barrier);
        }
        next_k += BK;
        --left;
    };

    // Turn: a piece of A's tile is 32 rows by 4 k. A lane reads four k of its row, which arrived as neighbours, and
    // stores them so that rows are neighbours. The engine has permuted each row's four 16-byte parts by its number
    // (swizzle), so that the reads meet no bank conflicts.
    const int chunk = warp % CHUNKS;
    const int turn_row = warp / CHUNKS * 32 + lane;
    const int turn_from = turn_row * (BK * 4) + ((chunk ^ (turn_row / 2 % 4)) << 4);
    const int turn_to = TURNED + (chunk * 4 * BM + turn_row) * 4;
    const auto store_turned = [&](unsigned target, float4 v) {
        store(target, v.x);
        store(target + BM * 4, v.y);
        store(target + 2 * BM * 4, v.z);
        store(target + 3 * BM * 4, v.w);
    };
    const auto arrive = [&]() {
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(turned) : "memory");
    };

    // Operands of one k, and of the next.
    float a[2][TM];
    float b[2][TN];
    const auto load = [&](int set, unsigned a_row, unsigned b_row) {
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            *(float4 *)&b[set][j] = load4(b_row + j * LANES_N * 4);
#pragma unroll
        for (int i = 0; i < TM; i += 4)
            *(float4 *)&a[set][i] = load4(a_row + i * LANES_M * 4);
    };

    // Load and turn the first tile, then load the operands of its first k.
    const int a_first = TURNED + m_thread * 4;
    const int b_first = 2 * A_BYTES + n_thread * 4;
    for (int tile = 0; tile < min(tiles, STAGES - 1); ++tile)
        fetch(tile);
    wait(arrived, 0);
#pragma unroll
    for (int i = 0; i < TURNS; ++i)
        store_turned(stages + turn_to + i * TURN_ROWS * 4, load4(stages + turn_from + i * TURN_ROWS * BK * 4));
    arrive();
    wait(turned, 0);
    unsigned a_row = stages + a_first;
    unsigned b_row = stages + b_first;
    load(0, a_row, b_row);

    int tile = 0;
#pragma unroll 1
    for (int end = last, begin = piece_before(end); end > first; end = begin, begin = piece_before(end)) {
        float sum[TM][TN] = {};
        // The products of one k, like a snake: two neighbours share an operand, which the register file then need not
        // deliver twice.
        const auto multiply = [&](int set) {
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) {
                    const int j_snake = i % 2 ? TN - 1 - j : j;
                    sum[i][j_snake] += a[set][i] * b[set][j_snake];
                }
        };

#pragma unroll 1
        for (int k_tile = begin; k_tile < end; ++k_tile, ++tile) {
            const bool more = tile + 1 < tiles;
            const unsigned next = stages + (tile + 1) % STAGES * STAGE_BYTES;
            const unsigned after = more ? next : stages + tile % STAGES * STAGE_BYTES; // of the last tile any will do
            if (more)
                wait(arrived + 8 * ((tile + 1) % STAGES), (tile + 1) / STAGES % 2);

            // Compute STEP values of k at a time, and turn a piece of the next tile meanwhile.
            unsigned from = after + turn_from;
            unsigned to = next + turn_to;
#pragma unroll 1
            for (int i = 0; i < TURNS; ++i) {
                const float4 piece = load4(from);
#pragma unroll
                for (int k = 0; k < STEP; ++k) {
                    load((k + 1) % 2, a_row + (k + 1) * BM * 4, b_row + (k + 1) * BN * 4);
                    multiply(k % 2);
                    if (k == STEP / 2)
                        store_turned(to, piece);
                }
                a_row += STEP * BM * 4;
                b_row += STEP * BN * 4;
                from += TURN_ROWS * BK * 4;
                to += TURN_ROWS * 4;
            }
            arrive();
#pragma unroll
            for (int k = 0; k < BK - TURNS * STEP; ++k) {
                if (k == BK - TURNS * STEP - 1) {
                    // Sync before the last k, whose operands are in registers: once all warps have turned their pieces
                    // of the next tile, they are done with the tile before this one, and its stage may fill again.
                    if (more)
                        wait(turned, (tile + 1) % 2);
                    if (tile + STAGES - 1 < tiles)
                        fetch(tile + STAGES - 1);
                    __syncwarp();
                    a_row = after + a_first - (k + 1) * BM * 4;
                    b_row = after + b_first - (k + 1) * BN * 4;
                }
                load((k + 1) % 2, a_row + (k + 1) * BM * 4, b_row + (k + 1) * BN * 4);
                multiply(k % 2);
            }
            a_row = after + a_first;
            b_row = after + b_first;
        }

        // Write back. Whoever has a tile's first k-tiles computes them before all its others and writes C anew; the
        // others wait for that and add to it.
        const bool is_head = begin % depth == 0;
        const bool is_tail = end % depth == 0;
        const int tile_begin = begin / depth * depth;
        const int m0 = begin / depth / tiles_n * BM;
        const int n0 = begin / depth % tiles_n * BN;
        if (!is_head) {
            if (t == 0) {
                const int head = block_of(tile_begin);
                while (*(volatile unsigned *)&written[head] == 0)
                    ;
                atomicSub(&written[head], 1); // the last one leaves it ready for the next launch
                __threadfence();
            }
            __syncthreads();
        }
#pragma unroll
        for (int i = 0; i < TM; ++i) {
            const int row = m0 + m_thread + i / 4 * 4 * LANES_M + i % 4;
            if (row >= M)
                continue;
#pragma unroll
            for (int j = 0; j < TN; j += 4) {
                const int col = n0 + n_thread + j * LANES_N;
                if (col >= N)
                    continue;
                float4 *c = (float4 *)(C + (size_t)row * N + col);
                const float4 value =
                    make_float4(alpha * sum[i][j], alpha * sum[i][j + 1], alpha * sum[i][j + 2], alpha * sum[i][j + 3]);
                if (is_head && beta == 0)
                    *c = value;
                else if (is_head) {
                    const float4 old = *c;
                    *c = make_float4(value.x + beta * old.x, value.y + beta * old.y, value.z + beta * old.z,
                                     value.w + beta * old.w);
                } else
                    add4(c, value);
            }
        }
        if (is_head && !is_tail) {
            __threadfence();
            __syncthreads();
            if (t == 0)
                *(volatile unsigned *)&written[blockIdx.x] = block_of(tile_begin + depth - 1) - blockIdx.x;
        }
    }
}
