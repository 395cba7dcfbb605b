// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0

// A warpgroup's sums to C, by way of shared memory and the copy engine.

#include "tma.cuh"
#include "wgmma.cuh"

#define PIECE (2 * 16 * ROW) // bytes of C that a warp writes at once: 16 rows

// 16 rows of ROW of a warp's results to a piece of shared memory: those of sums j .. j + 7 of each row, which belong at row m
// and column n of C. C is read where beta is not 0: two neighbours at once where rows start at multiples of 16 bytes.
template <bool VECTOR, int COUNT>
static __device__ __forceinline__ void fill_piece(unsigned piece, const float (&sum)[COUNT], int j, int m, int n, int M, int N,
                                                  float alpha, float beta, const real *C)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 8; i += 2) {
        unsigned tiles[4]; // rows 0 .. 7 and 8 .. 15 of eight columns, and of the next eight
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            const float *pair = &sum[(j + i + q / 2) * 4 + q % 2 * 2];
            const int row = m + q % 2 * 8 + lane / 4;
            const int column = n + (i + q / 2) * 8 + lane % 4 * 2;
            tiles[q] = scaled2<VECTOR>(pair[0], pair[1], alpha, beta, C + (size_t)row * N + column, row < M ? N - column : 0);
        }
        store_tiles(piece + lane % 16 * 128 + (((i + lane / 16) ^ lane % 8) << 4), tiles);
    }
}

// Write a warpgroup's sums to C, at whose row m and column n the first one belongs, a piece of a warp after the other. SLOTS
// for them take turns in shared memory: one is filled while the copy engine still reads the others.
template <int SLOTS, int COUNT>
static __device__ __forceinline__ void store_sums(const float (&sum)[COUNT], unsigned pieces, const TensorMap *map, int m,
                                                  int n, int M, int N, float alpha, float beta, const real *C)
{
    const int lane = threadIdx.x % 32;
    m += threadIdx.x % 128 / 32 * 16;
#pragma unroll
    for (int j = 0; j < COUNT / 4; j += 8) {
        const unsigned piece = pieces + j / 8 % SLOTS * PIECE;
        if (lane == 0) {
            if (j == 0)
                wait_for_stores<0>(); // those of the tile before
            else
                wait_for_stores<SLOTS - 1>();
        }
        __syncwarp();
        fill_piece<true>(piece, sum, j, m, n + j * 8, M, N, alpha, beta, C);
        publish_shared();
        __syncwarp();
        if (lane == 0) {
            store_box(map, n + j * 8, m, piece);
            close_stores();
        }
    }
}

// The same to a C whose rows start anywhere: the lanes of a warp write neighbours, two each.
template <int COUNT>
static __device__ __forceinline__ void store_sums_anywhere(const float (&sum)[COUNT], unsigned piece, int m, int n, int M,
                                                           int N, float alpha, float beta, real *C)
{
    const int lane = threadIdx.x % 32;
    m += threadIdx.x % 128 / 32 * 16;
#pragma unroll
    for (int j = 0; j < COUNT / 4; j += 8) {
        fill_piece<false>(piece, sum, j, m, n + j * 8, M, N, alpha, beta, C);
        __syncwarp();
        const int left = N - (n + j * 8 + lane * 2);
        real *c = C + (size_t)m * N + n + j * 8 + lane * 2;
#pragma unroll
        for (int row = 0; row < 16; ++row, c += N) {
            const unsigned both = load_word(piece + row * 128 + ((lane / 4 ^ row % 8) << 4) + lane % 4 * 4);
            if (m + row >= M || left <= 0)
                continue;
            if (left > 1 && (size_t)c % 4 == 0)
                *(unsigned *)c = both;
            else {
                ((unsigned short *)c)[0] = (unsigned short)both;
                if (left > 1)
                    ((unsigned short *)c)[1] = (unsigned short)(both >> 16);
            }
        }
        __syncwarp();
    }
}
