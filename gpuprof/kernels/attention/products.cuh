// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0

// Attention's two products by a warpgroup. Tiles of queries, keys and values lie in panels of ROW columns of their head, as
// tensor copies leave them: PANELS after each other, each of as many rows of 128 bytes as the tile has.

#include "tma.cuh"
#include "wgmma.cuh"

#include "rows.cuh"

#define PANELS (D / ROW)

// 64 rows of scores of as many keys as a thread has two of: the products of 16 k of queries and keys, which lie in rows of k
// both, or these are added to them.
#define SCORES(TYPE, COLUMNS, COUNT, Q, K, ADD)                                                                        \
    asm volatile("{\n"                                                                                                 \
                 ".reg .pred add;\n"                                                                                   \
                 "setp.ne.s32 add, " ADD ", 0;\n"                                                                      \
                 "wgmma.mma_async.sync.aligned.m64n" COLUMNS "k16.f32." TYPE "." TYPE                                  \
                 " {" PLACES_##COUNT "}, " Q ", " K ", add, 1, 1, 0, 0;\n"                                             \
                 "}"                                                                                                   \
                 : SUMS_##COUNT(0)                                                                                     \
                 : "l"(q), "l"(k), "r"((int)add))
#define SCORES_OF_RUN(COLUMNS, COUNT, Q, K, ADD)                                                                       \
    static __device__ __forceinline__ void add_scores(float (&sum)[COUNT], unsigned long long q, unsigned long long k, \
                                                      bool add)                                                        \
    {                                                                                                                  \
        if constexpr (is_bf16<real>)                                                                                   \
            SCORES("bf16", COLUMNS, COUNT, Q, K, ADD);                                                                 \
        else                                                                                                           \
            SCORES("f16", COLUMNS, COUNT, Q, K, ADD);                                                                  \
    }
SCORES_OF_RUN("64", 32, "%32", "%33", "%34")
SCORES_OF_RUN("96", 48, "%48", "%49", "%50")
SCORES_OF_RUN("128", 64, "%64", "%65", "%66")
SCORES_OF_RUN("160", 80, "%80", "%81", "%82")
SCORES_OF_RUN("176", 88, "%88", "%89", "%90")
SCORES_OF_RUN("192", 96, "%96", "%97", "%98")

// The products of 16 weights of each of 64 rows, which threads hold, and 16 rows of values are added to sums.
#define VALUES(TYPE, COLUMNS, COUNT, W, V)                                                                             \
    asm volatile("wgmma.mma_async.sync.aligned.m64n" COLUMNS "k16.f32." TYPE "." TYPE " {" PLACES_##COUNT "}, {" W     \
                 "}, " V ", 1, 1, 1, 1;"                                                                               \
                 : SUMS_##COUNT(0)                                                                                     \
                 : "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]), "l"(v))
#define VALUES_OF_RUN(COLUMNS, COUNT, W, V)                                                                            \
    static __device__ __forceinline__ void add_values(float (&sum)[COUNT], const unsigned (&w)[4], unsigned long long v) \
    {                                                                                                                  \
        if constexpr (is_bf16<real>)                                                                                   \
            VALUES("bf16", COLUMNS, COUNT, W, V);                                                                      \
        else                                                                                                           \
            VALUES("f16", COLUMNS, COUNT, W, V);                                                                       \
    }
VALUES_OF_RUN("64", 32, "%32, %33, %34, %35", "%36")
VALUES_OF_RUN("128", 64, "%64, %65, %66, %67", "%68")

// Start the scores of 64 queries, which begin at address q of tiles of BM rows, with a tile of BN keys.
template <int BM_ROWS, int COUNT>
static __device__ __forceinline__ void start_scores(float (&scores)[COUNT], unsigned q, unsigned keys)
{
#pragma unroll
    for (int k = 0; k < D; k += 16)
        add_scores(scores, rows_of_k(q + k / ROW * (128 * BM_ROWS) + k % ROW * 2),
                   rows_of_k(keys + k / ROW * (128 * 2 * COUNT) + k % ROW * 2), k > 0);
}
// Start adding up a tile of values with these weights.
template <int STEPS>
static __device__ __forceinline__ void start_sums(float (&out)[D / 2], const unsigned (&weights)[STEPS][4], unsigned values)
{
#pragma unroll
    for (int k = 0; k < STEPS; ++k)
        add_values(out, weights[k], rows_of_columns(values + k * 16 * 128, STEPS * 16 * 128));
}
// Weights of a tile, from its scores, as operands.
template <int STEPS, int COUNT>
static __device__ __forceinline__ void take_all(unsigned (&weights)[STEPS][4], const float (&scores)[COUNT])
{
#pragma unroll
    for (int i = 0; i < STEPS; ++i)
        take_weights(weights[i], scores, i);
}

// Wait for the turn of a warpgroup, or give it to one: the barrier of each is met by itself and the one before.
static __device__ __forceinline__ void take_turn(int group)
{
    asm volatile("bar.sync %0, 256;" ::"r"(1 + group) : "memory");
}
static __device__ __forceinline__ void give_turn(int group)
{
    asm volatile("bar.arrive %0, 256;" ::"r"(1 + group) : "memory");
}

// Start the copy of a box of three dimensions: the panel's first column of a head, its first row, and whose.
static __device__ __forceinline__ void copy_panel(unsigned target, const TensorMap *map, int column, int row, int head,
                                                  unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(target),
                 "l"(map), "r"(column), "r"(row), "r"(head), "r"(barrier)
                 : "memory");
}
// A whole tile of a head, from that row on.
template <int ROWS>
static __device__ __forceinline__ void copy_tile(unsigned target, const TensorMap *map, int row, int head, unsigned barrier)
{
#pragma unroll
    for (int panel = 0; panel < PANELS; ++panel)
        copy_panel(target + panel * (128 * ROWS), map, panel * ROW, row, head, barrier);
}
