// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "k split over warps"
problem = "gemm"
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]

[[variants]]
id = "splitk_8x32"
rung = 600
title = "8x32 tiles, k split over warps"
idea = "For matrices near 128: tiles of 8x32 make enough blocks for the GPU, and the eight warps of a block share out k and add their sums at the end."
after = "reg_8x16_pipelined"
change = "Sixty-four blocks instead of one for a 128x128 C, each with all its operands in flight at once: the grid fills the GPU, at the price of more async_copy_sectors."
bottleneck = "Launch and memory latency: at 128 the arithmetic is a fraction of a microsecond."
parameters = { TM = 2, TN = 4, BK = 128, STAGES = 2 }

[variants.moves]
grid_blocks = "rises"
theoretical_occupancy_pct = "rises"
registers_per_thread = "falls"
async_copy_sectors = "rises"

[[variants]]
id = "splitk_16x32"
rung = 610
title = "16x32 tiles, k split over warps"
idea = "For matrices near 256: splitk_8x32 with twice the rows per thread, while there are still about as many blocks as SMs."
after = "splitk_8x32"
change = "Two thirds of the loaded registers per FMA, and fewer bytes from L2 for each element of C: shared_load_wavefronts and async_copy_sectors fall, and so does the number of blocks."
bottleneck = "Memory latency: each block waits for its first tile, and ends with a sum over its warps."
parameters = { TM = 4, TN = 4, BK = 64, STAGES = 3 }

[variants.moves]
shared_load_wavefronts = "falls"
async_copy_sectors = "falls"
grid_blocks = "falls"

[[variants]]
id = "splitk_32x64"
rung = 620
title = "32x64 tiles, k split over warps"
idea = "For matrices near 512: 8x8 outputs per thread, so that one warp covers a 32x64 tile and eight warps share out k."
after = "splitk_16x32"
change = "Half the loaded registers per FMA of splitk_16x32, with 128 blocks for a 512x512 C: shared_load_wavefronts and async_copy_sectors halve, while registers rise."
bottleneck = "L2 bandwidth and the wait at each k-tile: a small tile reads its operands often."
parameters = { TM = 8, TN = 8, BK = 64, STAGES = 2 }

[variants.moves]
shared_load_wavefronts = "falls"
async_copy_sectors = "falls"
registers_per_thread = "rises"
grid_blocks = "falls"

[launch]
block = [256]
any_block = true
grid = ["cdiv(N, LANES_N * TN)", "cdiv(M, LANES_M * TM)"]
dynamic_shared_bytes = "max(STAGES * (LANES_M * TM * (BK + 4) + LANES_N * TN * BK), block_x * TM * TN) * real_bytes"

[constants] # a warp's lanes: 4 along M by 8 along N
LANES_M = 4
LANES_N = 8

[parameters]
TM = 2     # rows of C per thread
TN = 4     # columns of C per thread
BK = 128   # k per tile
STAGES = 2 # tiles in flight

[candidates]
TM = [1, 2, 4, 8]
TN = [4, 8]
BK = [32, 64, 128, 256]
STAGES = [2, 3, 4]
block = [[64], [128], [256], [512]]

[[require]]
condition = "block_x >= 32 and block_x % 32 == 0 and block_y == 1 and block_z == 1"
because = "{id} gives each warp its own k: the block must be whole warps in x"

[[require]]
condition = "TM > 0 and TN > 0 and TN % 4 == 0 and STAGES >= 2 and BK > 0 and BK * 8 % block_x == 0"
because = "{id} needs TN a multiple of 4, two STAGES or more, and BK a multiple of 4 per warp"

[[require]]
condition = "arch >= 80"
because = "{id} copies with cp.async, which needs compute capability 8.0"
*/

#define WARPS (BLOCK_X / 32) // each takes its own k
#define BM (LANES_M * TM)    // rows of C per block
#define BN (LANES_N * TN)    // columns of C per block
#define WARP_K (BK / WARPS)  // k of a tile that one warp takes
#define A_PITCH (BK + 4)     // padded: the lanes' rows start in different banks
#define A_STAGE (BM * A_PITCH)
#define B_STAGE (BK * BN)

// Start a copy of 16 bytes, or of 4, to shared memory; without `exists` it writes zeros and reads nothing.
static __device__ __forceinline__ void copy16(float *target, const float *source, bool exists)
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

// VECTOR: rows start at multiples of 16 bytes.
template <bool VECTOR>
static __device__ __forceinline__ void multiply(int M, int N, int K, real alpha, const real *A, const real *B, real beta,
                                                real *C)
{
    // Coordinates. Every warp computes the whole block tile, each for other k; a lane has rows m_lane + i * LANES_M.
    const int t = threadIdx.x;
    const int warp = t / 32;
    const int m_lane = t % 32 / LANES_N;
    const int n_lane = t % LANES_N * 4; // + 4 * LANES_N per group of columns
    const int m0 = blockIdx.y * BM;
    const int n0 = blockIdx.x * BN;

    // Shared memory: STAGES tiles in flight, later the warps' partial sums.
    extern __shared__ __align__(16) float shared[];
    float *As = shared;                    // (stage, row of C, k)
    float *Bs = shared + STAGES * A_STAGE; // (stage, k, column of C)

    const int tiles = (K + BK - 1) / BK;

    // Load one tile, zeros beyond the matrix. Every call closes a group of copies, if only an empty one.
    const auto load = [&](int tile) {
        float *a_stage = As + tile % STAGES * A_STAGE;
        float *b_stage = Bs + tile % STAGES * B_STAGE;
        const int k0 = tile * BK;
        if (tile < tiles && VECTOR) {
#pragma unroll
            for (int start = 0; start < BM * BK / 4; start += BLOCK_X) {
                const int i = start + t;
                const int k = i % (BK / 4) * 4;
                const int m = i / (BK / 4);
                const bool exists = m0 + m < M && k0 + k < K;
                if (m < BM)
                    copy16(a_stage + m * A_PITCH + k, exists ? A + (size_t)(m0 + m) * K + k0 + k : A, exists);
            }
#pragma unroll
            for (int start = 0; start < BN * BK / 4; start += BLOCK_X) {
                const int i = start + t;
                const int n = i % (BN / 4) * 4;
                const int k = i / (BN / 4);
                const bool exists = n0 + n < N && k0 + k < K;
                if (k < BK)
                    copy16(b_stage + k * BN + n, exists ? B + (size_t)(k0 + k) * N + n0 + n : B, exists);
            }
        } else if (tile < tiles) {
            // What does not exist is not read, but its address too is one of the matrix.
            const unsigned rows = M - m0;
            const unsigned columns = N - n0;
            const unsigned depth = K - k0;
            const float *a_tile = A + (size_t)m0 * K + k0;
            const float *b_tile = B + (size_t)k0 * N + n0;
#pragma unroll 4
            for (unsigned start = 0; start < BM * BK; start += BLOCK_X) {
                const unsigned i = start + t;
                const unsigned k = i % BK;
                const unsigned m = i / BK;
                const float *source = a_tile + (size_t)min(m, rows - 1) * (unsigned)K + min(k, depth - 1);
                if (BM * BK % BLOCK_X == 0 || m < BM)
                    copy4(a_stage + m * A_PITCH + k, source, m < rows && k < depth);
            }
#pragma unroll 4
            for (unsigned start = 0; start < BN * BK; start += BLOCK_X) {
                const unsigned i = start + t;
                const unsigned n = i % BN;
                const unsigned k = i / BN;
                const float *source = b_tile + (size_t)min(k, depth - 1) * (unsigned)N + min(n, columns - 1);
                if (BN * BK % BLOCK_X == 0 || k < BK)
                    copy4(b_stage + k * BN + n, source, n < columns && k < depth);
            }
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
#pragma unroll
    for (int tile = 0; tile < STAGES - 1; ++tile)
        load(tile);

    float sum[TM][TN] = {};
#pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
        // Sync: this tile is complete, and nobody reads the stage that is filled next.
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads();
        load(tile + STAGES - 1);

        // Compute this warp's k: four at a time of A, whose rows lie along k.
        const float *a_rows = As + tile % STAGES * A_STAGE + m_lane * A_PITCH + warp * WARP_K;
        const float *b_rows = Bs + tile % STAGES * B_STAGE + warp * WARP_K * BN + n_lane;
#pragma unroll
        for (int k0 = 0; k0 < WARP_K; k0 += 4) {
            float a[TM][4];
#pragma unroll
            for (int i = 0; i < TM; ++i)
                *(float4 *)a[i] = *(const float4 *)&a_rows[i * LANES_M * A_PITCH + k0];
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                float b[TN];
#pragma unroll
                for (int j = 0; j < TN; j += 4)
                    *(float4 *)&b[j] = *(const float4 *)&b_rows[(k0 + k) * BN + j * LANES_N];
#pragma unroll
                for (int i = 0; i < TM; ++i)
#pragma unroll
                    for (int j = 0; j < TN; ++j)
                        sum[i][j] += a[i][k] * b[j];
            }
        }
    }

    // Sync, then put the partial sums where the tiles were: (warp, row, column).
    __syncthreads();
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            *(float4 *)&shared[(warp * BM + m_lane + i * LANES_M) * BN + n_lane + j * LANES_N] = *(float4 *)&sum[i][j];
    __syncthreads();

    // Write back: each thread adds up all warps' sums of four neighbours.
#pragma unroll
    for (int start = 0; start < BM * BN / 4; start += BLOCK_X) {
        const int i = start + t;
        const int m = i / (BN / 4);
        if (m >= BM || m0 + m >= M)
            break;
        const int n = i % (BN / 4) * 4;
        float4 total = *(const float4 *)&shared[m * BN + n];
#pragma unroll
        for (int w = 1; w < WARPS; ++w) {
            const float4 part = *(const float4 *)&shared[(w * BM + m) * BN + n];
            total = make_float4(total.x + part.x, total.y + part.y, total.z + part.z, total.w + part.w);
        }
        real *c = C + (size_t)(m0 + m) * N + n0 + n;
        const float values[4] = {alpha * total.x, alpha * total.y, alpha * total.z, alpha * total.w};
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

extern "C" __global__ void __launch_bounds__(BLOCK_X)
    splitk(int M, int N, int K, real alpha, const real *A, const real *B, real beta, real *C)
{
    if (K % 4 == 0 && N % 4 == 0 && ((size_t)A | (size_t)B | (size_t)C) % 16 == 0)
        multiply<true>(M, N, K, alpha, A, B, beta, C);
    else
        multiply<false>(M, N, K, alpha, A, B, beta, C);
}
