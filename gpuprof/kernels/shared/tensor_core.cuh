// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0

// Products of 16-bit floats on tensor cores by mma.sync, what brings their operands to registers, and what takes the
// sums, which are float32, to a C of the run's type.

#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <typename T> constexpr bool is_bf16 = false;
template <> constexpr bool is_bf16<__nv_bfloat16> = true;

// Two floats as a word of two elements, the first one low.
static __device__ __forceinline__ unsigned pack(float low, float high)
{
    unsigned both;
    if constexpr (is_bf16<real>)
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    else
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

// Eight neighbours of a row, of which `left` exist and the others are zeros: one load where rows start at multiples of
// 16 bytes (VECTOR), which eight neighbours then lie in or beyond as a whole.
template <bool VECTOR> static __device__ __forceinline__ uint4 load8(const real *from, int left)
{
    if (VECTOR)
        return left > 0 ? *(const uint4 *)from : make_uint4(0, 0, 0, 0);
    __align__(16) real values[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
        values[i] = i < left ? from[i] : (real)0.0f;
    return *(const uint4 *)values;
}

// Add beta times C to two neighbours of a row, of which `left` exist.
template <bool VECTOR>
static __device__ __forceinline__ void add_old(float &first, float &second, float beta, const real *c, int left)
{
    if (left <= 0)
        return;
    __align__(4) real old[2];
    if (VECTOR)
        *(unsigned *)old = *(const unsigned *)c;
    else {
        old[0] = c[0];
        old[1] = left > 1 ? c[1] : (real)0.0f;
    }
    first += beta * (float)old[0];
    second += beta * (float)old[1];
}
// Write two neighbours of a row of C, of which `left` exist: at once where rows start at multiples of 16 bytes.
template <bool VECTOR>
static __device__ __forceinline__ void write2(real *c, int left, float alpha, float first, float second, float beta)
{
    first *= alpha;
    second *= alpha;
    if (beta != 0)
        add_old<VECTOR>(first, second, beta, c, left);
    __align__(4) real values[2];
    *(unsigned *)values = pack(first, second);
    if (VECTOR) {
        if (left > 0)
            *(unsigned *)c = *(const unsigned *)values;
    } else {
        if (left > 0)
            c[0] = values[0];
        if (left > 1)
            c[1] = values[1];
    }
}

// Four tiles of 8x8: lane i gives the address of row i % 8 of tile i / 8.
static __device__ __forceinline__ void load_tiles(unsigned (&tiles)[4], unsigned row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(tiles[0]), "=r"(tiles[1]), "=r"(tiles[2]), "=r"(tiles[3])
                 : "r"(row)
                 : "memory");
}
// The same, each tile turned.
static __device__ __forceinline__ void load_turned(unsigned (&tiles)[4], unsigned row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(tiles[0]), "=r"(tiles[1]), "=r"(tiles[2]), "=r"(tiles[3])
                 : "r"(row)
                 : "memory");
}
// Four tiles of 8x8 to shared memory, as load_tiles has them, or each turned.
template <bool TURN> static __device__ __forceinline__ void store_tiles(unsigned row, const unsigned (&tiles)[4])
{
#define STORE_TILES(KIND)                                                                                              \
    asm volatile("stmatrix.sync.aligned.m8n8.x4" KIND ".shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(tiles[0]),  \
                 "r"(tiles[1]), "r"(tiles[2]), "r"(tiles[3])                                                           \
                 : "memory")
    if (TURN)
        STORE_TILES(".trans");
    else
        STORE_TILES("");
#undef STORE_TILES
}

#define MMA(TYPE)                                                                                                      \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." TYPE "." TYPE ".f32"                                        \
                 " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                                    \
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])                                              \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
// 16x8 sums += 16x16 of A times 16x8 of B.
static __device__ __forceinline__ void multiply_add(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    if constexpr (is_bf16<real>)
        MMA("bf16");
    else
        MMA("f16");
}
#undef MMA
