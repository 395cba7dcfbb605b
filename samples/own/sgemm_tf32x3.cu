// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "FP32 from three products of TF32"
operation = "gemm"
idea = "CUDA cores end at one FMA a lane and cycle. Tensor cores multiply TF32, floats of 11 significant bits, eight times as fast: every value is split into a large part and the rest, and three products of the parts, without that of the two rests, are about as exact as one of FP32. Sums over 8 k are added in FP32, since tensor cores cut sums off instead of rounding them."
bottleneck = "Tensor cores as mma.sync feeds them, and beside them the instructions that split values and add sums, about four for each product."

[tensor_maps.A_map]
array = "A"
box = ["BK", "BM"]
swizzle_bytes = 128

[tensor_maps.B_map]
array = "B"
box = ["BOX_N", "BK"]
swizzle_bytes = 128

[[launches]]
entry = "sgemm_tf32x3"
arguments = ["M", "N", "K", "alpha", "A_map", "B_map", "beta", "C"]
block = ["32 * (BM // WM) * (BN // WN)"]
grid = ["cdiv(M, BM) * cdiv(N, BN)"]
dynamic_shared_bytes = "STAGES * BK * (BM + BN) * real_bytes"

[constants]
BK = 32    # k per tile: a row of A's is as long as the swizzle's
BOX_N = 32 # columns of B per copy, likewise

[parameters]
BM = 128   # rows of C per block
BN = 256   # columns of C per block
WM = 64    # rows of C per warp
WN = 64    # columns of C per warp
STAGES = 4 # tiles in shared memory
PANEL = 8  # tile rows whose blocks run together

[candidates]
BM = [64, 128, 256]
BN = [64, 128, 256]
WM = [16, 32, 64]
WN = [32, 64]
STAGES = [3, 4, 6]
PANEL = [4, 8, 16]

[[require]]
condition = "WM > 0 and WM % 16 == 0 and BM % WM == 0 and BM <= 256 and (WN == 32 or WN == 64) and BN % WN == 0 and BN <= 256"
because = "{id} needs warps of a multiple of 16 rows and of 32 or 64 columns, which divide the block's; those are 256 at most"

[[require]]
condition = "32 * (BM // WM) * (BN // WN) <= 1024 and WM * WN <= 4096 and WM * WN * (BM // WM) * (BN // WN) <= 32768"
because = "{id} keeps its sums in registers, which hold 4096 of a warp and 32768 of a block"

[[require]]
condition = "N % 4 == 0 and K % 4 == 0"
because = "{id} copies 16 bytes at a time: N and K must be multiples of 4"

[[require]]
condition = "STAGES >= 2 and PANEL >= 1"
because = "{id} needs two STAGES or more, and a PANEL of one tile row or more"

[[require]]
condition = "arch >= 90"
because = "{id} uses bulk copies, which need compute capability 9.0"

[[require]]
condition = "STAGES * BK * (BM + BN) * real_bytes <= (101376 if arch >= 120 else 231424)"
because = "{id} fills more shared memory per block than this compute capability has"
*/

#define WARPS_M (BM / WM)
#define WARPS (WARPS_M * (BN / WN))
#define TILES_M (WM / 16)     // a warp's tile in products of 16 rows
#define SIDES (WN / BOX_N)    // and, for each of B's boxes,
#define TILES_N (BOX_N / 8)   // of 8 columns
#define A_BYTES (BM * BK * 4)
#define BOX_BYTES (BOX_N * BK * 4)
#define STAGE_BYTES (A_BYTES + BN * BK * 4)
#define ROW_BYTES 128 // of A's tile and of B's boxes

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

// A value as the sum of two TF32, each rounded to its 11 bits: together they have 23 of 24 bits, or all. Tensor cores do not
// look at a float's last 13 bits, so that only what is subtracted must be rid of them. An infinite value becomes a NaN.
static __device__ __forceinline__ void split(float value, unsigned &large, unsigned &small)
{
    large = (__float_as_uint(value) + 0x1000u) & 0xffffe000u;
    small = __float_as_uint(value - __uint_as_float(large)) + 0x1000u;
}

// The products of 16 rows and 8 columns over 8 k, alone or added. Lane 4 g + t holds of A rows g and g + 8, of B column g, of both
// the t-th and the (t + 4)-th k, and of the sums columns 2 t and 2 t + 1 of both rows.
static __device__ __forceinline__ void multiply(float (&product)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9},"
        " {%10, %10, %10, %10};"
        : "=f"(product[0]), "=f"(product[1]), "=f"(product[2]), "=f"(product[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(0.0f));
}
static __device__ __forceinline__ void multiply_add(float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9},"
        " {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, 1)
    sgemm_tf32x3(int M, int N, int K, float alpha, const __grid_constant__ TensorMap A_map,
           const __grid_constant__ TensorMap B_map, float beta, float *C)
{
    // Coordinates. Blocks go down the columns of a panel of PANEL tile rows, then to the next panel: those that run at
    // the same time share its rows of A and columns of B in the L2 cache.
    const int tiles_m = (M + BM - 1) / BM;
    const int tiles_n = (N + BN - 1) / BN;
    const int panel = blockIdx.x / (PANEL * tiles_n);
    const int in_panel = blockIdx.x % (PANEL * tiles_n);
    const int height = min(PANEL, tiles_m - panel * PANEL); // the last panel may be lower
    const int m0 = (panel * PANEL + in_panel % height) * BM;
    const int n0 = in_panel / height * BN;
    const int t = threadIdx.x;
    const int lane_k = t % 4;
    const int group = t % 32 / 4;
    const int m_warp = t / 32 % WARPS_M * WM;
    const int n_warp = t / 32 / WARPS_M * WN;

    // Shared memory: STAGES stages, for each a barrier that counts the bytes which have arrived, and one that counts the
    // warps which are done with it.
    extern __shared__ __align__(1024) char shared[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES];
    const unsigned stages = (unsigned)__cvta_generic_to_shared(shared);
    const unsigned arrived = (unsigned)__cvta_generic_to_shared(barriers);
    const unsigned freed = arrived + 8 * STAGES;
    if (t == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(arrived + 8 * stage) : "memory");
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(freed + 8 * stage), "r"(WARPS) : "memory");
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();

    // Fetch a tile: one thread tells the barrier what to expect and starts the copies.
    const int tiles = (K + BK - 1) / BK;
    const auto fetch = [&](int tile) {
        const unsigned barrier = arrived + 8 * (tile % STAGES);
        const unsigned stage = stages + tile % STAGES * STAGE_BYTES;
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(STAGE_BYTES)
                     : "memory");
        copy_box(stage, &A_map, tile * BK, m0, barrier);
        for (int n = 0; n < BN; n += BOX_N)
            copy_box(stage + A_BYTES + n / BOX_N * BOX_BYTES, &B_map, n0 + n, tile * BK, barrier);
    };
    if (t == 0)
        for (int tile = 0; tile < min(tiles, STAGES - 1); ++tile)
            fetch(tile);

    // Places. Which k, rows and columns an instruction multiplies is free, as long as A, B and C agree. They are chosen so
    // that a lane loads whole vectors and a warp meets each bank once: of two groups of 8 k, 2 t and 2 t + 1 of each, for
    // two instructions; rows 0, 2, 4, 6, 1, 3, 5, 7 of 8; and four neighbouring columns of each 32 for four instructions.
    // The engine has permuted each row's eight 16-byte parts by its number (swizzle).
    const int row = 2 * (group % 4) + group / 4;
    const unsigned a_place = (m_warp + row) * ROW_BYTES + (((lane_k / 2) ^ row) << 4) + lane_k % 2 * 8;
    const unsigned b_place =
        A_BYTES + n_warp / BOX_N * BOX_BYTES + 2 * lane_k * ROW_BYTES + ((group ^ 2 * lane_k) << 4);

    float sum[TILES_M][SIDES * TILES_N][4] = {};
#pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
        // The stage that the tile before this one has left fills again.
        if (t == 0 && tile + STAGES - 1 < tiles) {
            if (tile > 0)
                wait(freed + 8 * ((tile - 1) % STAGES), (tile - 1) / STAGES % 2);
            fetch(tile + STAGES - 1);
        }
        __syncwarp();
        wait(arrived + 8 * (tile % STAGES), tile / STAGES % 2);
        const unsigned stage = stages + tile % STAGES * STAGE_BYTES;

#pragma unroll 1
        for (int k = 0; k < BK; k += 16) {
            // Of both groups of 8 k, by row: what this step multiplies, and what the next does.
            float2 a[TILES_M][2][2];
#pragma unroll
            for (int i = 0; i < TILES_M; ++i)
#pragma unroll
                for (int half = 0; half < 2; ++half)
#pragma unroll
                    for (int part = 0; part < 2; ++part)
                        a[i][half][part] = load2((stage + a_place ^ (k + 8 * part) * 4) +
                                                 (16 * i + 8 * half) * ROW_BYTES);
#pragma unroll
            for (int step = 0; step < 2; ++step) {
                unsigned a_large[TILES_M][4], a_small[TILES_M][4];
#pragma unroll
                for (int i = 0; i < TILES_M; ++i)
#pragma unroll
                    for (int half = 0; half < 2; ++half)
#pragma unroll
                        for (int part = 0; part < 2; ++part) {
                            const float2 both = a[i][half][part];
                            split(step ? both.y : both.x, a_large[i][2 * part + half], a_small[i][2 * part + half]);
                        }
#pragma unroll
                for (int side = 0; side < SIDES; ++side) {
                    unsigned b_large[TILES_N][2], b_small[TILES_N][2];
#pragma unroll
                    for (int part = 0; part < 2; ++part) {
                        const float4 v = load4((stage + b_place ^ step * 16) + side * BOX_BYTES +
                                               (k + 8 * part + step) * ROW_BYTES);
                        split(v.x, b_large[0][part], b_small[0][part]);
                        split(v.y, b_large[1][part], b_small[1][part]);
                        split(v.z, b_large[2][part], b_small[2][part]);
                        split(v.w, b_large[3][part], b_small[3][part]);
                    }
#pragma unroll
                    for (int i = 0; i < TILES_M; ++i) {
                        // The smallest products first. Four independent sums hide that each needs the one before.
                        float products[TILES_N][4];
#pragma unroll
                        for (int j = 0; j < TILES_N; ++j)
                            multiply(products[j], a_small[i], b_large[j]);
#pragma unroll
                        for (int j = 0; j < TILES_N; ++j)
                            multiply_add(products[j], a_large[i], b_small[j]);
#pragma unroll
                        for (int j = 0; j < TILES_N; ++j)
                            multiply_add(products[j], a_large[i], b_large[j]);
#pragma unroll
                        for (int j = 0; j < TILES_N; ++j)
#pragma unroll
                            for (int each = 0; each < 4; ++each)
                                sum[i][side * TILES_N + j][each] += products[j][each];
                    }
                }
            }
        }
        __syncwarp();
        if (t % 32 == 0)
            asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(freed + 8 * (tile % STAGES)) : "memory");
    }

    // Write back: in each row two times eight neighbouring columns.
#pragma unroll
    for (int i = 0; i < TILES_M; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int m = m0 + m_warp + 16 * i + 8 * half + row;
            if (m >= M)
                continue;
#pragma unroll
            for (int side = 0; side < SIDES; ++side)
#pragma unroll
                for (int next = 0; next < 2; ++next) {
                    const int n = n0 + n_warp + side * BOX_N + 8 * lane_k + 4 * next;
                    if (n >= N)
                        continue;
                    float4 *c = (float4 *)(C + (size_t)m * N + n);
                    const int each = 2 * half + next;
                    float4 value = make_float4(
                        alpha * sum[i][side * TILES_N][each], alpha * sum[i][side * TILES_N + 1][each],
                        alpha * sum[i][side * TILES_N + 2][each], alpha * sum[i][side * TILES_N + 3][each]);
                    if (beta != 0) {
                        const float4 old = *c;
                        value = make_float4(value.x + beta * old.x, value.y + beta * old.y, value.z + beta * old.z,
                                            value.w + beta * old.w);
                    }
                    *c = value;
                }
        }
}
