// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0

// What attention on tensor cores does between its two products. Sums lie as mma.sync and wgmma leave them: a thread has, of
// each eight columns, two neighbours of row lane / 4 of its warp's 16 and two of the row eight further down. Here row is
// the first of the two, and the four of eight columns follow each other.

#include "tensor_core.cuh"

#define SCALE_LOG2 (D == 64 ? 0.18033688011112042f : 0.12751743082459868f) // log2(e) / sqrt(D): for exp2

static __device__ __forceinline__ float power_of_2(float exponent)
{
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(exponent));
    return power;
}

// A warp's queries as operands: 16 rows by 16 columns each.
static __device__ __forceinline__ void load_queries(unsigned (&q)[D / 16][4], const real *Q, int row, int sequence)
{
#pragma unroll
    for (int i = 0; i < D / 16; ++i)
#pragma unroll
        for (int part = 0; part < 4; ++part) {
            const int at = row + part % 2 * 8;
            const int column = i * 16 + part / 2 * 8 + threadIdx.x % 4 * 2;
            q[i][part] = at < sequence ? *(const unsigned *)(Q + (size_t)at * D + column) : 0;
        }
}

// Leave out keys that a query does not attend to: those behind the last one and, causal, those behind the query.
template <int COUNT>
static __device__ __forceinline__ void mask(float (&scores)[COUNT], int row, int key0, int sequence, bool causal)
{
    const int warp_row = row & ~15;
    if (key0 + 2 * COUNT <= (causal ? min(sequence, warp_row + 1) : sequence))
        return;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        const int key = key0 + i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2;
        const int end = causal ? min(sequence, row + i / 2 % 2 * 8 + 1) : sequence;
        scores[i] = key < end ? scores[i] : __int_as_float(0xff800000);
    }
}

// Of each of the two rows: its largest score so far, this thread's part of the sum of weights, and the factor by which a
// larger score made smaller what was summed up before.
struct Rows {
    float top[2];
    float sum[2];
    float factor[2];
};
static __device__ __forceinline__ Rows no_rows()
{
    return {{__int_as_float(0xff800000), __int_as_float(0xff800000)}, {0, 0}, {0, 0}};
}

// Scores become weights: powers of two relative to the largest score so far, of which the rows are told.
template <int COUNT> static __device__ __forceinline__ void weigh(float (&scores)[COUNT], Rows &rows)
{
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float top = rows.top[half];
#pragma unroll
        for (int i = half * 2; i < COUNT; i += 4)
            top = fmaxf(top, fmaxf(scores[i], scores[i + 1]));
        top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, 1));
        top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, 2));
        const float base = top == __int_as_float(0xff800000) ? 0 : top * SCALE_LOG2; // no key yet: all weights are 0
        rows.factor[half] = power_of_2(rows.top[half] * SCALE_LOG2 - base);
        rows.top[half] = top;
        float sum = 0;
#pragma unroll
        for (int i = half * 2; i < COUNT; i += 4) {
            scores[i] = power_of_2(scores[i] * SCALE_LOG2 - base);
            scores[i + 1] = power_of_2(scores[i + 1] * SCALE_LOG2 - base);
            sum += scores[i] + scores[i + 1];
        }
        rows.sum[half] = rows.sum[half] * rows.factor[half] + sum;
    }
}

// All weights are there before what follows begins. ptxas would move them behind a wait for products, where tensor cores have
// nothing to do; it cannot tell that the sum has no such bits.
static __device__ __forceinline__ void finish(const Rows &rows)
{
    if (__float_as_int(rows.sum[0] + rows.sum[1]) == -1)
        __nanosleep(0);
}

// What was summed up before, relative to the largest score now. Most tiles bring none that is larger.
template <int COUNT> static __device__ __forceinline__ void rescale(float (&sums)[COUNT], const Rows &rows)
{
    if (__all_sync(0xffffffff, rows.factor[0] == 1 && rows.factor[1] == 1))
        return;
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
        sums[i] *= rows.factor[i / 2 % 2];
}

// Weights of 16 keys, 16 i .. 16 i + 15, as an operand: what a thread holds of a product is what it holds of the next one's
// left operand.
template <int COUNT>
static __device__ __forceinline__ void take_weights(unsigned (&a)[4], const float (&weights)[COUNT], int i)
{
#pragma unroll
    for (int part = 0; part < 4; ++part)
        a[part] = pack(weights[8 * i + 2 * part], weights[8 * i + 2 * part + 1]);
}

// Sums over the sum of all weights, to the two rows of O.
template <int COUNT>
static __device__ __forceinline__ void write_rows(const float (&sums)[COUNT], const Rows &rows, real *O, int row, int sequence)
{
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float sum = rows.sum[half];
        sum += __shfl_xor_sync(0xffffffff, sum, 1);
        sum += __shfl_xor_sync(0xffffffff, sum, 2);
        const float share = 1 / sum;
        const int at = row + half * 8;
        if (at < sequence)
#pragma unroll
            for (int i = half * 2; i < COUNT; i += 4)
                *(unsigned *)(O + (size_t)at * D + i / 4 * 8 + threadIdx.x % 4 * 2) = pack(sums[i] * share, sums[i + 1] * share);
    }
}
// The same in words of 16 bytes: of four times eight columns each of four neighbouring lanes gets eight.
template <int COUNT>
static __device__ __forceinline__ void write_words(const float (&sums)[COUNT], const Rows &rows, real *O, int row, int sequence)
{
    const int lane = threadIdx.x % 4;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float sum = rows.sum[half];
        sum += __shfl_xor_sync(0xffffffff, sum, 1);
        sum += __shfl_xor_sync(0xffffffff, sum, 2);
        const float share = 1 / sum;
        const int at = row + half * 8;
#pragma unroll
        for (int i = half * 2; i < COUNT; i += 16) {
            unsigned words[4];
#pragma unroll
            for (int k = 0; k < 4; ++k)
                words[k] = pack(sums[i + 4 * k] * share, sums[i + 4 * k + 1] * share);
            // Transpose: what the k-th lane has as its i-th becomes the i-th lane's k-th.
#pragma unroll
            for (int bit = 1; bit < 4; bit *= 2)
#pragma unroll
                for (int k = 0; k < 4; ++k)
                    if (!(k & bit)) {
                        const unsigned got = __shfl_xor_sync(0xffffffff, lane & bit ? words[k] : words[k | bit], bit);
                        (lane & bit ? words[k] : words[k | bit]) = got;
                    }
            if (at < sequence)
                *(uint4 *)(O + (size_t)at * D + i / 4 * 8 + lane * 8) = make_uint4(words[0], words[1], words[2], words[3]);
        }
    }
}
