// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
problem = "gemm"
entry = "streamk_8x8"
arguments = ["M", "N", "K", "alpha", "A_map", "B_map", "beta", "C"]

[[variants]]
id = "streamk_8x8"
rung = 565
title = "Smaller tiles, an even share"
idea = "Stream-K for C of a few tiles to an SM, or of fewer tiles than SMs: 8x8 outputs per thread make tiles of 64x256, and two blocks to an SM hide each other's waits. All multiply a slice of C by beta first, and then add the pieces of tiles that they have computed, in any order."
after = "streamk_8x16"
shape_of = "streamk_12x16"
change = "Twice as many tiles, of which less lies beyond a small C, and no chain of waiting blocks where many share a tile. Four loads for 64 FMAs instead of six for 128: shared_load_wavefronts rise, registers_per_thread fall."
bottleneck = "Shared-memory loads in large matrices, in small ones the adding up of a tile's pieces."
parameters = { BM = 64 }

[variants.moves]
ffma_thread_instructions = "stays"
shared_load_wavefronts = "rises"
registers_per_thread = "falls"

[[variants]]
id = "streamk_8x8_square"
rung = 567
title = "Square tiles, an even share"
idea = "The same for C that tiles of 64x256 fit badly: those of 128x128 are as large. At 640x640 25 of them do what 30 of the others do."
after = "streamk_8x8"
shape_of = "streamk_12x16"
change = "A tile's other shape: less of it lies beyond a narrow or small C. A thread's work in it is the same, and ffma_thread_instructions stay where both shapes fit."
bottleneck = "That of streamk_8x8."
parameters = { BM = 128 }

[variants.moves]
ffma_thread_instructions = "stays"

[tensor_maps.A_map]
array = "A"
box = ["BK", "BM"]
swizzle_bytes = 64

[tensor_maps.B_map]
array = "B"
box = ["16384 // BM", "BK"]

[launch]
block = [256]
grid = ["min(sm_count * SM_BLOCKS, cdiv(M, BM) * cdiv(N, 16384 // BM) * cdiv(K, BK))"]
dynamic_shared_bytes = "STAGES * BK * (2 * BM + 16384 // BM) * real_bytes"
cooperative = true

[constants]
BK = 16  # k per tile

[parameters]
BM = 64       # rows of C per block: 64 or 128; columns are 16384 / BM
STAGES = 4
SM_BLOCKS = 2 # blocks to an SM

[candidates]
BM = [64, 128]
STAGES = [3, 4]
SM_BLOCKS = [1, 2]

[[require]]
condition = "N % 4 == 0 and K % 4 == 0"
because = "{id} copies 16 bytes at a time: N and K must be multiples of 4"

[[require]]
condition = "STAGES >= 3"
because = "{id} needs three STAGES or more: one is computed from, one is turned, one fills"

[[require]]
condition = "BM == 64 or BM == 128"
because = "{id} needs BM 64 or 128"

[[require]]
condition = "SM_BLOCKS > 0 and sm_count * SM_BLOCKS <= 1024"
because = "{id} has room to mark the tiles of 1024 blocks"

[[require]]
condition = "arch >= 90"
because = "{id} uses bulk copies, which need compute capability 9.0"

[[require]]
condition = "arch < 120"
because = "streamk_8x8 fills 192 KiB of shared memory per SM, more than compute capability 12 has"
*/

#define THREADS BLOCK_X
#define WARPS (THREADS / 32)
#define BN (16384 / BM)
#define TM 8         // rows of C per thread
#define TN 8         // columns of C per thread
#define LANES_M 8    // a warp's lanes: 8 along M by 4 along N
#define LANES_N 4
#define WARPS_N (BN / (LANES_N * TN))
#define STEP 4       // values of k from one turn to the next
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
static __device__ __forceinline__ void prefetch(const TensorMap *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
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

#include "scale_first.cuh"
#ifdef ANY_N
#include "pack_rows.cuh"
#include "write_any_n.cuh" // in the place of the vectors below
#define TO_PACK , const float *A, const float *B, float *A_packed, float *B_packed
#else
#define TO_PACK
#endif

extern "C" __global__ void __launch_bounds__(THREADS, SM_BLOCKS)
    streamk_8x8(int M, int N, int K, float alpha, const __grid_constant__ TensorMap A_map,
                const __grid_constant__ TensorMap B_map, float beta, float *C TO_PACK)
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

    // Shared memory: STAGES stages; for each a barrier that counts the bytes which have arrived, and one for all
    // that counts the threads which have turned their pieces of A.
    extern __shared__ __align__(1024) char shared[];
    __shared__ __align__(8) unsigned long long barriers[STAGES + 1];
    const unsigned stages = (unsigned)__cvta_generic_to_shared(shared);
    const unsigned arrived = (unsigned)__cvta_generic_to_shared(barriers);
    const unsigned turned = arrived + 8 * STAGES;
    if (t == 32)
        prefetch(&A_map);
    if (t == 33)
        prefetch(&B_map);
    if (t == 0) {
        for (int stage = 0; stage < STAGES; ++stage)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(arrived + 8 * stage) : "memory");
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(turned), "r"(THREADS) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
#ifdef ANY_N
    pack_rows(M, N, K, A, B, A_packed, B_packed);
#endif

    // Fetch the share's k-tiles, by number in the order in which they are walked: one thread tells the barrier what to
    // expect and starts two copies. The warps take turns at it, so that none falls behind.
    const int newest = piece_before(last); // where the piece begins that comes first
    const auto fetch = [&](int tile) {
        if (t == tile % WARPS * 32) {
            const int behind = tile - (last - newest); // the first piece
            const int k_tile = behind < 0 ? newest + tile : max(first, newest - (behind / depth + 1) * depth) + behind % depth;
            const int next_k = k_tile % depth * BK;
            const int next_m = k_tile / depth / tiles_n * BM;
            const int next_n = k_tile / depth % tiles_n * BN;
            const unsigned barrier = arrived + 8 * (tile % STAGES);
            const unsigned stage = stages + tile % STAGES * STAGE_BYTES;
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                         "r"(A_BYTES + B_BYTES)
                         : "memory");
            copy_box(stage, &A_map, next_k, next_m, barrier);
            copy_box(stage + 2 * A_BYTES, &B_map, next_n, next_k, barrier);
        }
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
    scale_slice(M, N, beta, C);
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

            // Compute, and turn pieces of the next tile meanwhile.
            const unsigned from = after + turn_from;
            const unsigned to = next + turn_to;
            float4 piece;
#pragma unroll
            for (int k = 0; k < BK; ++k) {
                if (k == BK - 1) {
                    // Sync before the last k, whose operands are in registers: once all warps have turned their pieces
                    // of the next tile, they are done with the tile before this one, and its stage may fill again.
                    if (more)
                        wait(turned, (tile + 1) % 2);
                    if (tile + STAGES - 1 < tiles)
                        fetch(tile + STAGES - 1);
                    __syncwarp();
                    load((k + 1) % 2, after + a_first, after + b_first);
                } else
                    load((k + 1) % 2, a_row + (k + 1) * BM * 4, b_row + (k + 1) * BN * 4);
                if (k % STEP == 0 && k / STEP < TURNS)
                    piece = load4(from + k / STEP * TURN_ROWS * BK * 4);
                multiply(k % 2);
                if (k % STEP == STEP / 2 && k / STEP < TURNS)
                    store_turned(to + k / STEP * TURN_ROWS * 4, piece);
                if (k == STEP * TURNS - 1)
                    arrive();
            }
            a_row = after + a_first;
            b_row = after + b_first;
        }

        // Add this piece to its tile of C.
        if (end == last)
            wait_until_scaled();
        const int m0 = begin / depth / tiles_n * BM;
        const int n0 = begin / depth % tiles_n * BN;
#ifdef ANY_N
        each_element(sum, m0 + m_thread, n0 + n_thread, M, N, alpha, C, shared + STAGES * STAGE_BYTES, add);
#else
#pragma unroll
        for (int i = 0; i < TM; ++i) {
            const int row = m0 + m_thread + i / 4 * 4 * LANES_M + i % 4;
#pragma unroll
            for (int j = 0; j < TN; j += 4) {
                const int col = n0 + n_thread + j * LANES_N;
                if (col < N && row < M)
                    add4((float4 *)(C + (size_t)row * N + col),
                         make_float4(alpha * sum[i][j], alpha * sum[i][j + 1], alpha * sum[i][j + 2], alpha * sum[i][j + 3]));
            }
        }
#endif
    }
}
