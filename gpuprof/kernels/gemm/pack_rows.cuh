// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0

// Copies of A and B whose rows start at multiples of 16 bytes, as tensor maps want them.

#define PIECE 256 // elements of a row that a warp copies at a time

// Copy a matrix to rows of `pitch` elements, if it has not such rows already. What lies behind a row stays unwritten.
static __device__ __forceinline__ void pack_matrix(int rows, int columns, const float *source, float *target)
{
    const int pitch = (columns + 3) / 4 * 4;
    if (pitch == columns)
        return;
    const int pieces = (columns + PIECE - 1) / PIECE;
    const long long warps = (long long)gridDim.x * (blockDim.x / 32);
    const int lane = threadIdx.x % 32;
    for (long long i = (blockIdx.x * blockDim.x + threadIdx.x) / 32; i < (long long)rows * pieces; i += warps) {
        const int row = (int)(i / pieces);
        const int column = (int)(i % pieces) * PIECE + lane;
        const float *from = source + (size_t)row * columns + column;
        float *to = target + (size_t)row * pitch + column;
        float values[PIECE / 32];
#pragma unroll
        for (int j = 0; j < PIECE / 32; ++j)
            values[j] = column + j * 32 < columns ? from[j * 32] : 0;
#pragma unroll
        for (int j = 0; j < PIECE / 32; ++j)
            if (column + j * 32 < columns)
                to[j * 32] = values[j];
    }
}

extern "C" __global__ void pack(int M, int N, int K, const float *A, const float *B, float *A_packed, float *B_packed)
{
    pack_matrix(M, K, A, A_packed);
    pack_matrix(K, N, B, B_packed);
}
