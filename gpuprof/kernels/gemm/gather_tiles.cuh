// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0

// Tiles whose rows start anywhere in memory: the block's first 128 threads copy them to shared memory as the copy engine
// would, in rows of 128 bytes whose 16-byte pieces are permuted by the row's number. What does not exist is zero.

#include "cp_async.cuh"

#define FETCHING 128 // threads that fetch, and arrive
// Tiles under way behind the one that is waited for: a stage is free again only when the tile after its own is multiplied.
#define AHEAD (STAGES < 2 || A_WIDTH < 4 && B_WIDTH < 4 ? 0 : STAGES - 2)

static __device__ __forceinline__ unsigned place_of(unsigned tile, int row, int byte)
{
    return tile + row * 128 + ((byte / 16 ^ row % 8) << 4) + byte % 16;
}

// To the row so many further down; opaque, as compilers else multiply anew for each.
template <typename T> static __device__ __forceinline__ void go_down(const T *&row, size_t elements)
{
    row += elements;
    asm volatile("" : "+l"(row));
}

// The bits of an element of one byte or two.
template <typename T> static __device__ __forceinline__ unsigned load_bits(const T *element)
{
    return sizeof(T) == 1 ? __ldg((const unsigned char *)element) : __ldg((const unsigned short *)element);
}

// COUNT rows of a tile, of which so many rows and columns exist. Where matrix rows start at multiples of 4, 8 or 16 bytes (WIDTH)
// so many are copied at once, and nobody waits; smaller elements of other rows come one by one, by way of registers.
template <int WIDTH, int COUNT> struct Rows {
    unsigned words[WIDTH < 4 ? COUNT / 4 : 1];

    template <typename T>
    __device__ __forceinline__ void load(const T *from, int pitch, int rows, int columns)
    {
        if (WIDTH >= 4)
            return;
        constexpr int IN_WORD = 4 / sizeof(T);
        const int row = threadIdx.x / 32;
        const int column = threadIdx.x % 32 * IN_WORD;
        int left[IN_WORD];
#pragma unroll
        for (int j = 0; j < IN_WORD; ++j)
            left[j] = column + j < columns ? rows - row : 0;
        go_down(from, (size_t)row * pitch + column);
#pragma unroll
        for (int i = 0; i < COUNT / 4; ++i) {
            unsigned bits[IN_WORD], word = 0;
#pragma unroll
            for (int j = 0; j < IN_WORD; ++j)
                bits[j] = 4 * i < left[j] ? load_bits(from + j) : 0;
#pragma unroll
            for (int j = 0; j < IN_WORD; ++j)
                word |= bits[j] << 8 * sizeof(T) * j;
            words[WIDTH < 4 ? i : 0] = word;
            go_down(from, (size_t)pitch * 4);
        }
    }
    template <typename T>
    __device__ __forceinline__ void keep(unsigned tile, const T *from, int pitch, int rows, int columns)
    {
        constexpr int PIECE_BYTES = WIDTH < 4 ? 4 : WIDTH;
        const int row = threadIdx.x / (128 / PIECE_BYTES);
        const int byte = threadIdx.x % (128 / PIECE_BYTES) * PIECE_BYTES;
        const int column = byte / (int)sizeof(T);
        const int left = column < columns ? rows - row : 0;
        if (WIDTH >= 4)
            go_down(from, (size_t)row * pitch + column);
#pragma unroll
        for (int i = 0; i < COUNT / PIECE_BYTES; ++i) {
            const unsigned place = place_of(tile, row + PIECE_BYTES * i, byte);
            if (WIDTH < 4)
                store_word(place, words[WIDTH < 4 ? i : 0]);
            else {
                copy<PIECE_BYTES>(__cvta_shared_to_generic(place), from, PIECE_BYTES * i < left);
                go_down(from, (size_t)pitch * PIECE_BYTES);
            }
        }
    }
};

#ifndef B_ALONG_K
#define B_ALONG_K 0 // whether B's rows lie along k
#endif

// So many tiles of k to the stages, one after the other: of A BM rows of k, of B BN along k, or BK rows in blocks of 128 bytes.
template <typename T>
static __device__ __forceinline__ void gather_tiles(unsigned stages, unsigned full, unsigned empty, const T *A, const T *B,
                                                    int k, int tiles, int m, int n, int M, int N, int K)
{
    constexpr int BLOCK = 128 / sizeof(T); // columns
    Rows<A_WIDTH, BM> of_a;
    constexpr int BLOCKS = B_ALONG_K ? 1 : BN / BLOCK;
    Rows<B_WIDTH, B_ALONG_K ? BN : BK> of_b[BLOCKS];
    const int pitch = B_ALONG_K ? K : N;
#pragma unroll 1
    for (int tile = 0; tile < tiles + AHEAD; ++tile, k += BK) {
        if (tile < tiles) {
            const unsigned stage = stages + tile % STAGES * STAGE;
            const T *a = A + (size_t)m * K + k, *b = B + (B_ALONG_K ? (size_t)n * K + k : (size_t)k * N + n);
            const int rows = B_ALONG_K ? N - n : K - k, columns = B_ALONG_K ? K - k : N - n;
            of_a.load(a, K, M - m, K - k);
#pragma unroll
            for (int i = 0; i < BLOCKS; ++i)
                of_b[i].load(b + i * BLOCK, pitch, rows, columns - i * BLOCK);
            wait(empty + 8 * (tile % STAGES), tile / STAGES % 2 ^ 1); // at once in the first round
            of_a.keep(stage, a, K, M - m, K - k);
#pragma unroll
            for (int i = 0; i < BLOCKS; ++i)
                of_b[i].keep(stage + 128 * (BM + i * BK), b + i * BLOCK, pitch, rows, columns - i * BLOCK);
        }
        close_group();
        if (tile >= AHEAD) {
            wait_for_groups<AHEAD>();
            publish_shared();
            arrive_at(full + 8 * ((tile - AHEAD) % STAGES));
        }
    }
}
