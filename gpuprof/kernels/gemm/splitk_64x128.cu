// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "64x128 tiles, k split over two groups of warps"
problem = "gemm"
rung = 630
idea = "For matrices near 1024: reg_8x16_pipelined with a quarter of its tile, whose two halves of the block take every other half of each k-tile."
after = "reg_8x16_pipelined"
shape_of = "splitk_32x64"
change = "128 blocks for a 1024x1024 C where reg_8x16_pipelined has 32, each with as many threads to hide latency: the grid fills the GPU, while global_load_sectors and async_copy_sectors double."
bottleneck = "Shared-memory loads, four for each 64 FMAs, and the sum at the end."
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]

[moves]
grid_blocks = "rises"
registers_per_thread = "falls"
global_load_sectors = "rises"
async_copy_sectors = "rises"

[launch]
block = [256]
grid = ["cdiv(N, BN)", "cdiv(M, BM)"]
dynamic_shared_bytes = "max(2 * BK * (BM + 4 + BN), 2 * BM * BN) * real_bytes"

[constants]
BM = 64  # rows of C per block
BN = 128 # columns of C per block

[parameters]
BK = 32

[candidates]
BK = [16, 32, 64]

[[require]]
condition = "BK == 16 or BK == 32 or BK == 64"
because = "splitk_64x128 needs BK 16, 32 or 64"

[[require]]
condition = "arch >= 80"
because = "splitk_64x128 copies with cp.async, which needs compute capability 8.0"
*/

#define THREADS BLOCK_X
#define TM 8            // rows of C per thread
#define TN 8            // columns of C per thread
#define GROUPS 2        // of warps; each computes the whole block tile
#define GROUP_K (BK / GROUPS)
#define LANES_M 4       // a warp's lanes: 4 along M by 8 along N
#define LANES_N 8
#define WARPS_N (BN / (LANES_N * TN))
#define A_PITCH (BM + 4) // padded: the transposing stores below meet 2-way bank conflicts instead of 8-way ones
#define A_ROWS (THREADS / (BK / 4))
#define B_ROWS (THREADS / (BN / 4))
#define A_STAGE (BK * A_PITCH)
#define B_STAGE (BK * BN)

// Start a copy of 16 bytes, or of 4, to shared memory; without `exists` it writes zeros and reads nothing.
static __device__ __forceinline__ void copy16(float *target, const float *source, bool exists = true)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((unsigned)__cvta_generic_to_shared(target)),
                 "l"(source), "r"(exists ? 16 : 0)
                 : "memory");
}
static __device__ __forceinline__ void copy4(float *target, const float *source, bool exists)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"((unsigned)__cvta_generic_to_shared(target)),
                 "l"(source), "r"(exists ? 4 : 0)
                 : "memory");
}

// The kernel, with 16-byte copies (VECTOR) where rows start at multiples of 16 bytes, else element by element.
template <bool VECTOR>
static __device__ __forceinline__ void multiply(int M, int N, int K, real alpha, const real *A, const real *B,
                                                real beta, real *C)
{
    // Coordinates. A lane's rows and columns come in groups of four neighbours; the groups of a warp interleave.
    const int t = threadIdx.x;
    const int lane = t % 32;
    const int warp = t / 32;
    const int group = warp / (8 / GROUPS);
    const int lane_n = lane % 2 + lane / 8 * 2;
    const int lane_m = lane / 2 % LANES_M;
    const int m_thread = warp % (8 / GROUPS) / WARPS_N * LANES_M * TM + lane_m * 4; // + 4 * LANES_M per group of rows
    const int n_thread = warp % WARPS_N * LANES_N * TN + lane_n * 4; // + 4 * LANES_N per group of columns
    const int m0 = blockIdx.y * BM;
    const int n0 = blockIdx.x * BN;

    // Shared memory, two stages: one is computed from while the other fills.
    extern __shared__ __align__(16) float shared[];
    float *Bs = shared;               // (stage, k, column of C)
    float *As = shared + 2 * B_STAGE; // (stage, k, row of C): A transposed

    // Pointers. Rows and columns beyond the matrix are replaced by the last ones: what they contribute is never stored.
    // Beyond K the tiles hold zeros: the first tile takes the odd K % BK, so that no later one needs a check.
    const int tiles = (K + BK - 1) / BK;
    const int k_first = K - (tiles - 1) * BK;
    const int a_k = t % (BK / 4) * 4; // this thread loads four k of rows a_m, a_m + A_ROWS, … of A's tile
    const int a_m = t / (BK / 4);
    const int b_n = t % (BN / 4) * 4; // and four columns of rows b_k, b_k + B_ROWS, … of B's tile
    const int b_k = t / (BN / 4);
    const float *a_source[BM / A_ROWS];
#pragma unroll
    for (int i = 0; i < BM / A_ROWS; ++i)
        a_source[i] = A + (size_t)min(m0 + a_m + i * A_ROWS, M - 1) * K + a_k;
    const float *b_source = B + (size_t)b_k * N + min(n0 + b_n, max(N - 4, 0));

    float4 a_next[BM / A_ROWS]; // A passes through registers, to be transposed on its way
    const auto store_a = [&](int stage) {
        float *target = As + stage * A_STAGE + a_k * A_PITCH + a_m;
#pragma unroll
        for (int i = 0; i < BM / A_ROWS; ++i) {
            target[i * A_ROWS + 0 * A_PITCH] = a_next[i].x;
            target[i * A_ROWS + 1 * A_PITCH] = a_next[i].y;
            target[i * A_ROWS + 2 * A_PITCH] = a_next[i].z;
            target[i * A_ROWS + 3 * A_PITCH] = a_next[i].w;
        }
    };
    // The tile of k0 .. k0 + count - 1, element by element, for rows that 16-byte copies cannot read.
    const auto copy_elements = [&](int stage, int k0, int count) {
#pragma unroll 4
        for (int start = 0; start < BM * BK; start += THREADS) {
            const int i = start + t;
            const int k = i % BK;
            const int m = i / BK;
            const bool exists = m0 + m < M && k < count;
            copy4(As + stage * A_STAGE + k * A_PITCH + m, exists ? A + (size_t)(m0 + m) * K + k0 + k : A, exists);
        }
#pragma unroll 4
        for (int start = 0; start < BN * BK; start += THREADS) {
            const int i = start + t;
            const int n = i % BN;
            const int k = i / BN;
            const bool exists = n0 + n < N && k < count;
            copy4(Bs + stage * B_STAGE + k * BN + n, exists ? B + (size_t)(k0 + k) * N + n0 + n : B, exists);
        }
    };

    // Load the first tile, then the operands of its first k.
    if (VECTOR) {
#pragma unroll
        for (int i = 0; i < BM / A_ROWS; ++i) {
            a_next[i] = a_k < k_first ? *(const float4 *)a_source[i] : make_float4(0, 0, 0, 0);
            a_source[i] += k_first;
        }
        store_a(0);
#pragma unroll
        for (int k = 0; k < BK; k += B_ROWS) {
            const bool exists = b_k + k < k_first;
            copy16(Bs + (b_k + k) * BN + b_n, exists ? b_source + (size_t)k * N : B, exists);
        }
        b_source += (size_t)k_first * N;
    } else
        copy_elements(0, 0, k_first);
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();

    float sum[TM][TN] = {};
    float a[2][TM]; // operands of this k and of the next
    float b[2][TN];
    const auto load_operands = [&](int set, const float *a_row, const float *b_row) {
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            *(float4 *)&b[set][j] = *(const float4 *)&b_row[j * LANES_N];
#pragma unroll
        for (int i = 0; i < TM; i += 4)
            *(float4 *)&a[set][i] = *(const float4 *)&a_row[i * LANES_M];
    };
    const float *a_group = As + group * GROUP_K * A_PITCH + m_thread;
    const float *b_group = Bs + group * GROUP_K * BN + n_thread;
    load_operands(0, a_group, b_group);

#pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
        // Load: start the next tile's copies; they have this whole tile's FMAs to arrive.
        const int stage = tile % 2;
        const bool more = tile + 1 < tiles;
        if (more) {
            if (VECTOR) {
#pragma unroll
                for (int i = 0; i < BM / A_ROWS; ++i) {
                    a_next[i] = *(const float4 *)a_source[i];
                    a_source[i] += BK;
                }
#pragma unroll
                for (int k = 0; k < BK; k += B_ROWS)
                    copy16(Bs + (stage ^ 1) * B_STAGE + (b_k + k) * BN + b_n, b_source + (size_t)k * N);
                b_source += (size_t)BK * N;
            } else
                copy_elements(stage ^ 1, k_first + tile * BK, BK);
        }

        // Compute this group's k.
        const float *a_row = a_group + stage * A_STAGE;
        const float *b_row = b_group + stage * B_STAGE;
#pragma unroll
        for (int k = 0; k < GROUP_K; ++k) {
            if (k == GROUP_K - 2 && more && VECTOR)
                store_a(stage ^ 1);
            // Sync before the last k of the tile: its operands are in registers, so the stage may be refilled.
            if (k == GROUP_K - 1) {
                asm volatile("cp.async.wait_all;" ::: "memory");
                __syncthreads();
                const int after = more ? stage ^ 1 : stage; // after the last tile any operands will do
                load_operands((k + 1) % 2, a_group + after * A_STAGE, b_group + after * B_STAGE);
            } else
                load_operands((k + 1) % 2, a_row + (k + 1) * A_PITCH, b_row + (k + 1) * BN);
            // Walk the 8x8 products like a snake: two neighbours always share an operand, which the register file then
            // need not deliver twice.
#pragma unroll
            for (int j = 0; j < TN; ++j)
#pragma unroll
                for (int i = 0; i < TM; ++i) {
                    const int i_snake = j % 2 ? TM - 1 - i : i;
                    sum[i_snake][j] += a[k % 2][i_snake] * b[k % 2][j];
                }
        }
    }

    // Sync, then put the groups' sums where the stages were: (group, row, column).
    __syncthreads();
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            const int m = m_thread + i / 4 * 4 * LANES_M + i % 4;
            *(float4 *)&shared[(group * BM + m) * BN + n_thread + j * LANES_N] = *(float4 *)&sum[i][j];
        }
    __syncthreads();

    // Write back: each thread adds up both groups' sums of four neighbours.
#pragma unroll
    for (int start = 0; start < BM * BN / 4; start += THREADS) {
        const int m = (start + t) / (BN / 4);
        const int n = (start + t) % (BN / 4) * 4;
        if (m0 + m >= M)
            break;
        const float4 low = *(const float4 *)&shared[m * BN + n];
        const float4 high = *(const float4 *)&shared[(BM + m) * BN + n];
        real *c = C + (size_t)(m0 + m) * N + n0 + n;
        const float values[4] = {alpha * (low.x + high.x), alpha * (low.y + high.y), alpha * (low.z + high.z),
                                 alpha * (low.w + high.w)};
        if (VECTOR && beta == 0) {
            if (n0 + n < N)
                *(float4 *)c = make_float4(values[0], values[1], values[2], values[3]);
        } else {
#pragma unroll
            for (int q = 0; q < 4; ++q)
                if (n0 + n + q < N)
                    c[q] = beta == 0 ? values[q] : values[q] + beta * c[q];
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    splitk_64x128(int M, int N, int K, real alpha, const real *A, const real *B, real beta, real *C)
{
    if (K % 4 == 0 && N % 4 == 0 && ((size_t)A | (size_t)B | (size_t)C) % 16 == 0)
        multiply<true>(M, N, K, alpha, A, B, beta, C);
    else
        multiply<false>(M, N, K, alpha, A, B, beta, C);
}
