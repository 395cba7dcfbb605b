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

// COUNT rows of a tile, of which so many rows and columns exist. Where matrix rows start at multiples of 4, 8 or 16 bytes (WIDTH)
// so many are copied at once, and nobody waits; halves of other rows come one by one, by way of registers.
template <int WIDTH, int COUNT> struct Rows {
    unsigned words[WIDTH < 4 ? COUNT / 4 : 1];

    template <typename T>
    __device__ __forceinline__ void load(const T *from, int pitch, int rows, int columns)
    {
        if (WIDTH >= 4)
            return;
        const int row = threadIdx.x / 32;
        const int column = threadIdx.x % 32 * 2;
        const int left[2] = {column < columns ? rows - row : 0, column + 1 < columns ? rows - row : 0};
        go_down(from, (size_t)row * pitch + column);
#pragma unroll
        for (int i = 0; i < COUNT / 4; ++i) {
            unsigned short halves[2];
#pragma unroll
            for (int j = 0; j < 2; ++j)
                halves[j] = 4 * i < left[j] ? __ldg((const unsigned short *)from + j) : 0;
            words[WIDTH < 4 ? i : 0] = halves[0] | (unsigned)halves[1] << 16;
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
                copy<PIECE_BYTES>((T *)__cvta_shared_to_generic(place), from, PIECE_BYTES * i < left);
                go_down(from, (size_t)pitch * PIECE_BYTES);
            }
        }
    }
};

// So many tiles of k to the stages, one after the other: of A BM rows of k, of B BK rows in blocks of 128 bytes.
template <typename T>
static __device__ __forceinline__ void gather_tiles(unsigned stages, unsigned full, unsigned empty, const T *A, const T *B,
                                                    int k, int tiles, int m, int n, int M, int N, int K)
{
    constexpr int BLOCK = 128 / sizeof(T); // columns
    Rows<A_WIDTH, BM> of_a;
    Rows<B_WIDTH, BK> of_b[BN / BLOCK];
#pragma unroll 1
    for (int tile = 0; tile < tiles + AHEAD; ++tile, k += BK) {
        if (tile < tiles) {
            const unsigned stage = stages + tile % STAGES * STAGE;
            const T *a = A + (size_t)m * K + k, *b = B + (size_t)k * N + n;
            of_a.load(a, K, M - m, K - k);
#pragma unroll
            for (int i = 0; i < BN / BLOCK; ++i)
                of_b[i].load(b + i * BLOCK, N, K - k, N - n - i * BLOCK);
            wait(empty + 8 * (tile % STAGES), tile / STAGES % 2 ^ 1); // at once in the first round
            of_a.keep(stage, a, K, M - m, K - k);
#pragma unroll
            for (int i = 0; i < BN / BLOCK; ++i)
                of_b[i].keep(stage + 128 * (BM + i * BK), b + i * BLOCK, N, K - k, N - n - i * BLOCK);
        }
        close_group();
        if (tile >= AHEAD) {
            wait_for_groups<AHEAD>();
            publish_shared();
            arrive_at(full + 8 * ((tile - AHEAD) % STAGES));
        }
    }
}
