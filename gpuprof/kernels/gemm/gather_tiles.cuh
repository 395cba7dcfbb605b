// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0

// Tiles whose rows start anywhere in memory: the block's first 128 threads load them, and put them into shared memory as the
// copy engine would, in rows of 128 bytes whose 16-byte pieces are permuted by the row's number. What does not exist is zero.

#define FETCHING 128 // threads that fetch, and arrive

// Of ROWS rows, of which so many rows and columns exist, a warp loads each fourth one, a word each lane.
template <int ROWS, typename T>
static __device__ __forceinline__ void load_rows(unsigned (&words)[ROWS / 4], const T *from, int pitch, int rows, int columns)
{
    constexpr int PER_WORD = 4 / sizeof(T);
    const int column = threadIdx.x % 32 * PER_WORD;
    from += column;
#pragma unroll
    for (int i = 0; i < ROWS / 4; ++i) {
        const int row = threadIdx.x / 32 + 4 * i;
        const int left = row < rows ? columns - column : 0;
        __align__(4) T values[PER_WORD];
#pragma unroll
        for (int j = 0; j < PER_WORD; ++j)
            values[j] = j < left ? from[(size_t)row * pitch + j] : (T)0.0f;
        words[i] = *(const unsigned *)values;
    }
}
template <int COUNT> static __device__ __forceinline__ void keep_rows(unsigned target, const unsigned (&words)[COUNT])
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        const int row = threadIdx.x / 32 + 4 * i;
        store_word(target + row * 128 + ((lane / 4 ^ row % 8) << 4) + lane % 4 * 4, words[i]);
    }
}

// So many tiles of k to the stages, one after the other: of A BM rows of k, of B BK rows in blocks of 128 bytes.
template <typename T>
static __device__ __forceinline__ void gather_tiles(unsigned stages, unsigned full, unsigned empty, const T *A, const T *B,
                                                    int k, int tiles, int m, int n, int M, int N, int K)
{
    constexpr int BLOCK = 128 / sizeof(T); // columns
    unsigned of_a[BM / 4], of_b[BN / BLOCK][BK / 4];
#pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile, k += BK) {
        const unsigned stage = stages + tile % STAGES * STAGE;
        load_rows<BM>(of_a, A + (size_t)m * K + k, K, M - m, K - k);
#pragma unroll
        for (int i = 0; i < BN / BLOCK; ++i)
            load_rows<BK>(of_b[i], B + (size_t)k * N + n + i * BLOCK, N, K - k, N - n - i * BLOCK);
        wait(empty + 8 * (tile % STAGES), tile / STAGES % 2 ^ 1); // at once in the first round
        keep_rows(stage, of_a);
#pragma unroll
        for (int i = 0; i < BN / BLOCK; ++i)
            keep_rows(stage + 128 * (BM + i * BK), of_b[i]);
        publish_shared();
        arrive_at(full + 8 * (tile % STAGES));
    }
}
