// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0

// What kernels with tiles of BM by BN of C share: a tile's operands to shared memory and their products, which have BK k in
// rows of 128 bytes, and a warpgroup's sums to C, by way of shared memory and the copy engine.

#include "tma.cuh"
#include "wgmma.cuh"

#ifndef TURNED // 1: sums are of C turned, columns of B by rows of A, which take the places of A's rows and B's columns
#define TURNED 0
#endif
#ifndef A_ROWS
#define A_ROWS BM // that are fetched
#endif
#define A_BYTES (128 * BM)
#define A_ALONG_K (BK == 128 || !TURNED) // whether its rows lie along k
#define B_ALONG_K (BK == 128 || TURNED)
#define B_BYTES (128 * (B_ALONG_K ? BN : (BN + ROW - 1) / ROW * ROW)) // halves have room for boxes of ROW columns
#define STAGE (A_BYTES + B_BYTES)
#if BK == 128 // rows along k, of which a box has any number
#define OF_B_REST
#define B_REST_MAP &B_map
#else
#define OF_B_REST const __grid_constant__ TensorMap B_rest_map,
#define B_REST_MAP &B_rest_map
#endif

// Fetch a tile of A and one of B. OF_A blocks of a cluster, side by side, share the one, and OF_B blocks, one below the
// other, the other: each fetches its part for all. A cluster may have several times so many blocks. What is no whole box of
// B's columns comes by a map of its own.
template <int OF_B, int OF_A = 1>
static __device__ __forceinline__ void fetch_tiles(unsigned stage, const TensorMap *A_map, const TensorMap *B_map,
                                                   const TensorMap *B_rest_map, int k, int m, int n, int rank,
                                                   unsigned barrier)
{
    expect_bytes(barrier, 128 * (A_ROWS + BN));
    const int below = rank % OF_B, beside = rank / OF_B % OF_A; // of how many blocks this one lies
    const int row = ((1 << OF_A * OF_B) - 1) / ((1 << OF_B) - 1) << (rank - beside * OF_B); // every OF_B-th
    const int first = OF_A == 1 ? 0 : beside * ((A_ALONG_K ? A_ROWS : BK) / OF_A);
    if (A_ALONG_K)
        copy_box_to_all<OF_A>(stage + 128 * first, TURNED ? B_map : A_map, k, m + first, barrier, row);
    else
        for (int i = 0; i < BM; i += ROW)
            copy_box_to_all<OF_A>(stage + 128 * (i + first), B_map, m + i, k + first, barrier, row);
    const int column = ((1 << OF_B) - 1) << (rank - below);
    if (B_ALONG_K) {
        const int n_first = below * (BN / OF_B);
        copy_box_to_all<OF_B>(stage + A_BYTES + 128 * n_first, TURNED ? A_map : B_map, k, n + n_first, barrier, column);
    } else {
        const int k_first = below * (BK / OF_B);
        for (int i = 0; i < BN; i += ROW)
            copy_box_to_all<OF_B>(stage + A_BYTES + 2 * (i * BK + k_first * ROW), i + ROW > BN ? B_rest_map : B_map, n + i,
                                  k + k_first, barrier, column);
    }
}
// The sums of 64 rows of a warpgroup's.
template <int COUNT> static __device__ __forceinline__ float (&sums_of(float (&sum)[COUNT], int m))[BN / 2]
{
    return (float(&)[BN / 2])sum[m / 64 * (BN / 2)];
}
// The products of a tile, from row m_group of A's on, as many as there are sums for; their group is closed.
template <int COUNT>
static __device__ __forceinline__ void multiply_tiles(float (&sum)[COUNT], unsigned stage, int m_group, bool add)
{
    const unsigned long long a =
        A_ALONG_K ? rows_of_k(stage + m_group * 128) : rows_of_columns(stage + m_group * 128, 2 * BK * ROW);
    const unsigned long long b = B_ALONG_K ? rows_of_k(stage + A_BYTES) : rows_of_columns(stage + A_BYTES, 2 * BK * ROW);
    begin_products();
#pragma unroll
    for (int k = 0; k < 128; k += 32) // bytes of a row
#pragma unroll
        for (int m = 0; m < COUNT * 128 / BN; m += 64)
            multiply_add(sums_of(sum, m), further(a, m * 128 + (A_ALONG_K ? k : k * 64)), further(b, B_ALONG_K ? k : k * 64),
                         add || k > 0);
    close_products();
}

#define WRITERS (TURNED ? 4 : 1)       // warps that write a piece of C at once
#define PIECE (WRITERS * 2 * 16 * ROW) // its bytes: 16 rows, turned 64

// A warp's sums as they are to be in C, at whose row m and column n the first one belongs: times alpha, and with beta times
// what is there, two neighbours of which are read at once where rows start at multiples of 16 bytes (VECTOR).
template <bool VECTOR, int COUNT>
static __device__ __forceinline__ void scale_sums(float (&sum)[COUNT], int m, int n, int M, int N, float alpha, float beta,
                                                  const real *C)
{
    const int lane = threadIdx.x % 32;
    if (alpha == 1 && beta == 0)
        return;
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
        sum[i] *= alpha;
    if (beta == 0)
        return;
    if (TURNED) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            const int row = m + i / 4 * 8 + lane % 4 * 2 + i % 2;
            const int column = n + threadIdx.x % 128 / 32 * 16 + i / 2 % 2 * 8 + lane / 4;
            if (row < M && column < N)
                sum[i] += beta * (float)C[(size_t)row * N + column];
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < COUNT; i += 2) {
        const int row = m + i / 2 % 2 * 8 + lane / 4;
        const int column = n + i / 4 * 8 + lane % 4 * 2;
        add_old<VECTOR>(sum[i], sum[i + 1], beta, C + (size_t)row * N + column, row < M ? N - column : 0);
    }
}

// 16 rows of ROW of a warp's results to a piece of shared memory: those of sums j .. j + 7 of each row, where there are such.
// Turned, the warps of a warpgroup fill 16 columns each of 64 rows.
template <int COUNT> static __device__ __forceinline__ void fill_piece(unsigned piece, const unsigned (&packed)[COUNT], int j)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < min(8, COUNT / 2 - j); i += 2) {
        unsigned tiles[4]; // rows 0 .. 7 and 8 .. 15 of eight columns, and of the next eight
#pragma unroll
        for (int q = 0; q < 4; ++q)
            tiles[q] = packed[(j + i) * 2 + q];
        const int row = TURNED ? (i + lane / 16) * 8 + lane % 8 : lane % 16;
        const int sixteen = TURNED ? threadIdx.x % 128 / 32 * 2 + lane / 8 % 2 : i + lane / 16; // bytes of the row
        store_tiles<TURNED>(piece + row * 128 + ((sixteen ^ lane % 8) << 4), tiles);
    }
}

// So many columns of a piece to C, whose rows start anywhere: the lanes of a warp write neighbours, two each where these begin
// a word, and then what is left at both ends of all rows.
static __device__ __forceinline__ void write_piece(unsigned piece, int columns, int m, int n, int M, int N, real *C)
{
    const int lane = threadIdx.x % 32;
    columns = min(columns, N - n);
    C += (size_t)m * N + n;
    unsigned *words[2]; // of this lane, in every other row
    int left[2], order[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int odd = ((size_t)C / 2 + i * N) % 2;
        words[i] = (unsigned *)(C + (size_t)i * N + odd + lane * 2);
        left[i] = odd + lane * 2 + 1 < columns ? M - m : 0;
        order[i] = odd ? 0x5432 : 0x3210;
    }
#pragma unroll
    for (int row = 0; row < 16; ++row) {
        const unsigned both = load_word((piece + lane * 4 ^ row % 8 << 4) + row * 128);
        const unsigned next = __shfl_down_sync(0xffffffff, both, 1);
        if (row < left[row % 2])
            *words[row % 2] = __byte_perm(both, next, order[row % 2]);
        words[row % 2] += N;
        asm volatile("" : "+l"(words[row % 2])); // compilers else multiply anew for each row
    }
    const int row = lane % 16;
    const int odd = ((size_t)C / 2 + row * N) % 2;
    const int column = lane < 16 ? 0 : columns - 1;
    if (row < M - m && column < columns && (lane < 16 ? odd : column >= odd && (columns - odd) % 2)) {
        const unsigned both = load_word((piece + column / 2 * 4 ^ row % 8 << 4) + row * 128);
        *(unsigned short *)(C + (size_t)row * N + column) = (unsigned short)(both >> column % 2 * 16);
    }
}

// A warp's sums as they are to be in C, two neighbours in a word.
template <bool VECTOR, int COUNT>
static __device__ __forceinline__ void pack_sums(unsigned (&packed)[COUNT / 2], float (&sum)[COUNT], int m, int n, int M,
                                                 int N, float alpha, float beta, const real *C)
{
    scale_sums<VECTOR>(sum, TURNED ? m : m + threadIdx.x % 128 / 32 * 16, n, M, N, alpha, beta, C);
#pragma unroll
    for (int i = 0; i < COUNT / 2; ++i)
        packed[i] = pack(sum[2 * i], sum[2 * i + 1]);
}

// Write a piece of each warp's packed sums to C, those from j on of each row, where the warpgroup's first one belongs at row m
// and column n. SLOTS for pieces take turns in shared memory: one is filled while the copy engine still reads the others. What
// is no whole piece goes by a map of its own.
template <int SLOTS, int COUNT>
static __device__ __forceinline__ void store_piece(const unsigned (&packed)[COUNT], int j, unsigned pieces, const TensorMap *map,
                                                   const TensorMap *rest_map, int m, int n)
{
    const int warp = threadIdx.x % 128 / 32;
    const auto meet = [] {
        if (TURNED)
            meet_warpgroup();
        else
            __syncwarp();
    };
    const unsigned piece = pieces + j / 8 % SLOTS * PIECE;
    const bool stores = warp % WRITERS == 0 && elected();
    if (stores) {
        if (j == 0)
            wait_for_stores<0>(); // those of the tile before
        else
            wait_for_stores<SLOTS - 1>();
    }
    meet();
    fill_piece(piece, packed, j);
    publish_shared();
    meet();
    if (stores) {
        store_box(j + 8 > COUNT / 2 ? rest_map : map, TURNED ? n : n + j * 8, TURNED ? m + j * 8 : m + warp * 16, piece);
        close_stores();
    }
}
template <int SLOTS, int COUNT>
static __device__ __forceinline__ void store_packed(const unsigned (&packed)[COUNT], unsigned pieces, const TensorMap *map,
                                                    const TensorMap *rest_map, int m, int n)
{
#pragma unroll
    for (int j = 0; j < COUNT / 2; j += 8)
        store_piece<SLOTS>(packed, j, pieces, map, rest_map, m, n);
}
template <int SLOTS, int COUNT>
static __device__ __forceinline__ void store_sums(float (&sum)[COUNT], unsigned pieces, const TensorMap *map,
                                                  const TensorMap *rest_map, int m, int n, int M, int N, float alpha, float beta, real *C)
{
    unsigned packed[COUNT / 2];
    pack_sums<true>(packed, sum, m, n, M, N, alpha, beta, C);
    store_packed<SLOTS>(packed, pieces, map, rest_map, m, n);
}

// The same to a C whose rows start anywhere.
template <int COUNT>
static __device__ __forceinline__ void store_sums_anywhere(float (&sum)[COUNT], unsigned piece, int m, int n, int M, int N,
                                                           float alpha, float beta, real *C)
{
    unsigned packed[COUNT / 2];
    pack_sums<false>(packed, sum, m, n, M, N, alpha, beta, C);
    m += threadIdx.x % 128 / 32 * 16;
#pragma unroll
    for (int j = 0; j < COUNT / 4; j += 8) {
        fill_piece(piece, packed, j);
        __syncwarp();
        write_piece(piece, ROW, m, n + j * 8, M, N, C);
        __syncwarp();
    }
}
