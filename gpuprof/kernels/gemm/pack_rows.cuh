// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0

// Copies of A and B whose rows start at multiples of 16 bytes, as tensor maps want them, made by all blocks of a
// cooperative grid before any of them goes on.

#define SPAN 256  // elements of a row that a warp copies
#define AT_ONCE 4 // of a warp under way at once
#define UNIT (16 / (int)sizeof(real))

// Wait until all blocks have come here, and see what they wrote: the copy engine too, which has a way to memory of its own.
static __device__ unsigned blocks_here;
static __device__ unsigned times_met;
static __device__ __forceinline__ void meet_all_blocks()
{
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        const unsigned before = *(volatile unsigned *)&times_met;
        __threadfence();
        if (atomicInc(&blocks_here, gridDim.x - 1) == gridDim.x - 1) // which leaves it 0 for the next launch
            atomicAdd(&times_met, 1);
        else
            while (*(volatile unsigned *)&times_met == before)
                ;
        __threadfence();
    }
    __syncthreads();
    asm volatile("fence.proxy.async;" ::: "memory");
}

// Copy A and B to rows of a multiple of UNIT elements, if theirs are not. What lies behind a row stays unwritten.
static __device__ __forceinline__ void pack_rows(int M, int N, int K, const real *A, const real *B, real *A_packed,
                                                 real *B_packed)
{
    const unsigned a_pieces = K % UNIT ? (K + SPAN - 1) / SPAN : 0; // of a row
    const unsigned b_pieces = N % UNIT ? (N + SPAN - 1) / SPAN : 0;
    if (a_pieces + b_pieces == 0)
        return;
    const unsigned a_total = M * a_pieces;
    const unsigned total = a_total + K * b_pieces;
    const unsigned warps = gridDim.x * (blockDim.x / 32);
    const int lane = threadIdx.x % 32;
#pragma unroll 1
    for (unsigned first = (blockIdx.x * blockDim.x + threadIdx.x) / 32; first < total; first += AT_ONCE * warps) {
        real values[AT_ONCE][SPAN / 32];
        real *to[AT_ONCE];
        int left[AT_ONCE]; // elements of the row from this lane's first on
#pragma unroll
        for (int p = 0; p < AT_ONCE; ++p) {
            const unsigned i = min(first + p * warps, total - 1);
            const bool of_a = i < a_total;
            const unsigned piece = of_a ? i : i - a_total;
            const unsigned pieces = of_a ? a_pieces : b_pieces;
            const int columns = of_a ? K : N;
            const size_t row = piece / pieces;
            const int column = piece % pieces * SPAN + lane;
            const real *from = (of_a ? A : B) + row * columns + column;
            to[p] = (of_a ? A_packed : B_packed) + row * ((columns + UNIT - 1) / UNIT * UNIT) + column;
            left[p] = first + p * warps < total ? columns - column : 0;
#pragma unroll
            for (int j = 0; j < SPAN / 32; ++j)
                values[p][j] = j * 32 < left[p] ? from[j * 32] : (real)0.0f;
        }
#pragma unroll
        for (int p = 0; p < AT_ONCE; ++p)
#pragma unroll
            for (int j = 0; j < SPAN / 32; ++j)
                if (j * 32 < left[p])
                    to[p][j * 32] = values[p][j];
    }
    meet_all_blocks();
}
