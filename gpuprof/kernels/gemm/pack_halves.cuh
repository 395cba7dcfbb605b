// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0

// Copies of A and B whose rows start at multiples of 16 bytes, as tensor maps want them; of those whose rows do not.

#define AT_ONCE 4 // words of two elements that a lane copies at once

static __device__ __forceinline__ void pack_rows(int rows, int columns, const real *from, real *to)
{
    if (columns % 8 == 0)
        return;
    const int words = (columns + 1) / 2;
    const int pitch = (columns + 7) / 8 * 8;
    const int pieces = (words + 32 * AT_ONCE - 1) / (32 * AT_ONCE); // of a row, one for a warp
    const int warps = gridDim.x * (blockDim.x / 32);
    const int lane = threadIdx.x % 32;
    for (int piece = (blockIdx.x * blockDim.x + threadIdx.x) / 32; piece < rows * pieces; piece += warps) {
        const int row = piece / pieces;
        const int first = piece % pieces * (32 * AT_ONCE) + lane;
        const unsigned short *source = (const unsigned short *)from + (size_t)row * columns;
        unsigned word[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            const int column = 2 * (first + 32 * i);
            word[i] = column < columns ? source[column] : 0;
            if (column + 1 < columns)
                word[i] |= (unsigned)source[column + 1] << 16;
        }
        unsigned *target = (unsigned *)(to + (size_t)row * pitch) + first;
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i)
            if (first + 32 * i < words)
                target[32 * i] = word[i];
    }
}

extern "C" __global__ void pack_operands(int M, int N, int K, const real *A, const real *B, real *A_packed, real *B_packed)
{
    pack_rows(M, K, A, A_packed);
    pack_rows(K, N, B, B_packed);
}
