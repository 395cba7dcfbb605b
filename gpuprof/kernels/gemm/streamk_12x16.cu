// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "12x16 outputs per thread"
problem = "gemm"
rung = 570
idea = "Stream-K: one block for each SM, and the k-tiles of all tiles of C are dealt out evenly. A tile that two blocks share is written by the first and added to by the second. With all addresses gone from its registers a thread has room for 12x16 outputs, in tiles of 96x512."
after = "bulk_8x16"
change = "There is no last wave in which SMs idle: all blocks end together. Seven loads for 192 FMAs instead of six for 128: shared_load_wavefronts fall, registers_per_thread rise to the limit."
bottleneck = "Register bandwidth: values that arrive from shared memory, and operands of one FMA that share a register bank, keep the scheduler from issuing in about one cycle of ten (dispatch stalls); nothing else waits."
arguments = ["M", "N", "K", "alpha", "A_map", "B_map", "beta", "C"]

[moves]
shared_load_wavefronts = "falls"
registers_per_thread = "rises"

[tensor_maps.A_map]
array = "A"
box = ["BK", "BM"]
swizzle_bytes = 64

[tensor_maps.B_map]
array = "B"
box = ["BOX_N", "BK"]

[launch]
block = [256]
grid = ["min(sm_count, cdiv(M, BM) * cdiv(N, BN) * cdiv(K, BK))"]
dynamic_shared_bytes = "STAGES * BK * (2 * BM + BN) * real_bytes"
cooperative = true

[constants]
BM = 96     # rows of C per block
BN = 512    # columns of C per block
BK = 16     # k per tile
BOX_N = 256 # columns of B per copy: the engine takes no more

[parameters]
STAGES = 4

[candidates]
STAGES = [3, 4, 5]

[[require]]
condition = "N % 4 == 0 and K % 4 == 0"
because = "streamk_12x16 copies 16 bytes at a time: N and K must be multiples of 4"

[[require]]
condition = "STAGES >= 3"
because = "streamk_12x16 needs three STAGES or more: one is computed from, one is turned, one fills"

[[require]]
condition = "sm_count <= 1024"
because = "streamk_12x16 has room to mark the tiles of 1024 SMs"

[[require]]
condition = "arch >= 90"
because = "streamk_12x16 uses bulk copies, which need compute capability 9.0"

[[require]]
condition = "arch < 120"
because = "streamk_12x16 fills 176 KiB of shared memory per block, more than compute capability 12 has"
*/

#define THREADS BLOCK_X
#define WARPS (THREADS / 32)
#define TM 12        // rows of C per thread
#define TN 16        // columns of C per thread
#define LANES_M 8    // a warp's lanes: 8 along M by 4 along N
#define LANES_N 4
#define STEP 4       // values of k between two turns of the inner loop
#define PIECES (BM / 32)                   // each warp turns two k of A's tile, in pieces of 32 rows
#define BOX_BYTES (BOX_N * BK * 4)
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
static __device__ __forceinline__ float2 load2(unsigned address)
{
    float2 v;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "r"(address) : "memory");
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

// Set by each block once it has written a piece of a tile that the next block ends.
static __device__ unsigned written[1024];

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    streamk_12x16(int M, int N, int K, float alpha, const __grid_constant__ TensorMap A_map,
                  const __grid_constant__ TensorMap B_map, float beta, float *C)
{
    // Coordinates. A lane's rows and columns come in groups of four neighbours; the groups of a warp interleave.
    const int t = threadIdx.x;
    const int lane = t % 32;
    const int warp = t / 32;
    const int lane_n = lane / 2 % LANES_N;
    const int lane_m = lane % 2 + lane / 8 * 2;
    const int m_thread = lane_m * 4;                       // + 4 * LANES_M per group of rows
    const int n_thread = warp * LANES_N * TN + lane_n * 4; // + 4 * LANES_N per group of columns

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
    if (t == 0) {
        for (int stage = 0; stage < STAGES; ++stage)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(arrived + 8 * stage) : "memory");
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(turned), "r"(THREADS) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();

    // Fetch the share's next k-tile: one thread tells the barrier what to expect and starts three copies. The warps take
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
            for (int n = 0; n < BN; n += BOX_N)
                copy_box(stage + 2 * A_BYTES + n / BOX_N * BOX_BYTES, &B_map, next_n + n, next_k, barrier);
        }
        next_k += BK;
        --left;
    };

    // Turn: a warp's piece of A's tile is 32 rows by two k. A lane reads two k of its row, which arrived as
    // neighbours, and stores them so that rows are neighbours. The engine has permuted each row's four 16-byte parts
    // by its number (swizzle), so that the reads of a warp spread over all banks.
    const int turn_from = lane * (BK * 4) + ((warp / 2 ^ (lane / 2 % 4)) << 4) + warp % 2 * 8;
    const int turn_to = TURNED + (2 * warp * BM + lane) * 4;
    const auto store_turned = [&](unsigned target, float2 v) {
        store(target, v.x);
        store(target + BM * 4, v.y);
    };
    const auto arrive = [&]() {
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(turned) : "memory");
    };

    // Operands of one k, and of the next.
    float a[2][TM];
    float b[2][TN];
    const auto load = [&](int set, unsigned a_row, unsigned b_row) {
#pragma unroll
        for (int i = 0; i < TM; i += 4)
            *(float4 *)&a[set][i] = load4(a_row + i * LANES_M * 4);
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            *(float4 *)&b[set][j] = load4(b_row + j * LANES_N * 4);
    };

    // Load and turn the first tile, then load the operands of its first k.
    const int a_first = TURNED + m_thread * 4;
    const int b_first = 2 * A_BYTES + n_thread / BOX_N * BOX_BYTES + n_thread % BOX_N * 4;
    for (int tile = 0; tile < min(tiles, STAGES - 1); ++tile)
        fetch(tile);
    wait(arrived, 0);
#pragma unroll
    for (int i = 0; i < PIECES; ++i)
        store_turned(stages + turn_to + i * 32 * 4, load2(stages + turn_from + i * 32 * BK * 4));
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
            for (int i = 0; i < PIECES; ++i) {
                const float2 piece = load2(from);
#pragma unroll
                for (int k = 0; k < STEP; ++k) {
                    load((k + 1) % 2, a_row + (k + 1) * BM * 4, b_row + (k + 1) * BOX_N * 4);
                    multiply(k % 2);
                }
                store_turned(to, piece);
                a_row += STEP * BM * 4;
                b_row += STEP * BOX_N * 4;
                from += 32 * BK * 4;
                to += 32 * 4;
            }
            arrive();
#pragma unroll
            for (int k = 0; k < BK - PIECES * STEP; ++k) {
                if (k == BK - PIECES * STEP - 1) {
                    // Sync before the last k, whose operands are in registers: once all warps have turned their pieces
                    // of the next tile, they are done with the tile before this one, and its stage may fill again.
                    if (more)
                        wait(turned, (tile + 1) % 2);
                    if (tile + STAGES - 1 < tiles)
                        fetch(tile + STAGES - 1);
                    __syncwarp();
                    a_row = after + a_first - (k + 1) * BM * 4;
                    b_row = after + b_first - (k + 1) * BOX_N * 4;
                }
                load((k + 1) % 2, a_row + (k + 1) * BM * 4, b_row + (k + 1) * BOX_N * 4);
                multiply(k % 2);
            }
            a_row = after + a_first;
            b_row = after + b_first;
        }

        // Write back. Whoever has a tile's first k-tiles writes C anew; the others wait for their predecessor, which
        // computes that piece before all its others, and add to what it wrote.
        const bool is_head = begin % depth == 0;
        const bool is_tail = end % depth == 0;
        const int m0 = begin / depth / tiles_n * BM;
        const int n0 = begin / depth % tiles_n * BN;
        if (!is_head) {
            if (t == 0) {
                while (*(volatile unsigned *)&written[blockIdx.x - 1] == 0)
                    ;
                written[blockIdx.x - 1] = 0; // ready for the next launch
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
        if (!is_tail) {
            __threadfence();
            __syncthreads();
            if (t == 0)
                *(volatile unsigned *)&written[blockIdx.x] = 1;
        }
    }
}
