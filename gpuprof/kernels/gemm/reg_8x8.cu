// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "8x8 outputs per thread"
problem = "gemm"
rung = 500
idea = "Each thread keeps an 8x8 tile of C in registers: per k it loads 8 + 8 values with four 16-byte loads and multiplies all pairs."
after = "float4_multi"
change = "An 8x8 tile per thread instead of 8x4: sixteen loaded values feed 64 FMAs where twelve fed 32, so shared_load_wavefronts and global_load_sectors fall while registers rise."
bottleneck = "Exposed latency: all threads wait for device memory, then for shared memory, at every k-tile. On an H200 it is a little slower than float4_multi, which keeps more warps resident to hide the wait; the rungs after this one hide it without them."
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]

[moves]
shared_load_wavefronts = "falls"
global_load_sectors = "falls"
registers_per_thread = "rises"
theoretical_occupancy_pct = "falls"

[launch]
block = [256]
grid = ["cdiv(N, 16 * TN)", "cdiv(M, BM)"]

[constants]
BM = 128 # rows of C per block

[parameters]
BK = 16 # k per tile
TN = 8  # columns of C per thread: 16 of them side by side

[candidates]
BK = [8, 16, 32]
TN = [8, 16]

[[require]]
condition = "(TN == 8 or TN == 16) and (BK == 8 or BK == 16 or BK == 32 and TN == 8)"
because = "{id} needs TN 8 or 16, and BK 8, 16 or, with TN=8, 32"
*/

#define THREADS BLOCK_X
#define TM 8             // rows of C per thread
#define BN (16 * TN)     // columns of C per block
#define LANES_M 8        // a warp's lanes: 8 along M by 4 along N
#define LANES_N 4
#define WARPS_N (BN / (LANES_N * TN))
#define A_PITCH (BM + 4) // padded: the transposing stores below meet 2-way bank conflicts instead of 8-way ones
#define A_ROWS (THREADS / (BK / 4))
#define B_ROWS (THREADS / (BN / 4))

// Four consecutive elements, of which the first `count` exist; zeros for the others.
static __device__ __forceinline__ float4 load4(const float *source, int count, bool vector)
{
    if (vector)
        return count > 0 ? *(const float4 *)source : make_float4(0, 0, 0, 0);
    return make_float4(count > 0 ? source[0] : 0, count > 1 ? source[1] : 0, count > 2 ? source[2] : 0,
                       count > 3 ? source[3] : 0);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    reg_8x8(int M, int N, int K, real alpha, const real *A, const real *B, real beta, real *C)
{
    // Coordinates. A lane's rows and columns come in groups of four neighbours; the groups of a warp interleave.
    const int t = threadIdx.x;
    const int lane = t % 32;
    const int warp = t / 32;
    const int m_thread = warp / WARPS_N * LANES_M * TM + lane / LANES_N * 4; // + 4 * LANES_M per group of rows
    const int n_thread = warp % WARPS_N * LANES_N * TN + lane % LANES_N * 4; // + 4 * LANES_N per group of columns
    const int m0 = blockIdx.y * BM;
    const int n0 = blockIdx.x * BN;

    // Shared memory: A transposed, so that the rows a thread needs for one k are neighbours.
    __shared__ __align__(16) float As[BK][A_PITCH]; // (k, row of C)
    __shared__ __align__(16) float Bs[BK][BN];      // (k, column of C)

    // Pointers. 16-byte loads need rows that start at multiples of 16 bytes.
    const bool vector = K % 4 == 0 && N % 4 == 0 && ((size_t)A | (size_t)B | (size_t)C) % 16 == 0;
    const int a_k = t % (BK / 4) * 4; // this thread loads four k of rows a_m, a_m + A_ROWS, … of A's tile
    const int a_m = t / (BK / 4);
    const int b_n = t % (BN / 4) * 4; // and four columns of rows b_k, b_k + B_ROWS, … of B's tile
    const int b_k = t / (BN / 4);

    float sum[TM][TN] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        // Load; zeros beyond the matrix.
#pragma unroll
        for (int m = a_m; m < BM; m += A_ROWS) {
            const int count = m0 + m < M ? K - k0 - a_k : 0;
            const float4 a = load4(A + (size_t)(m0 + m) * K + k0 + a_k, count, vector);
            As[a_k + 0][m] = a.x;
            As[a_k + 1][m] = a.y;
            As[a_k + 2][m] = a.z;
            As[a_k + 3][m] = a.w;
        }
#pragma unroll
        for (int k = b_k; k < BK; k += B_ROWS) {
            const int count = k0 + k < K ? N - n0 - b_n : 0;
            *(float4 *)&Bs[k][b_n] = load4(B + (size_t)(k0 + k) * N + n0 + b_n, count, vector);
        }
        __syncthreads();

        // Compute: an outer product of 8 rows and TN columns per k.
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a[TM];
            float b[TN];
#pragma unroll
            for (int i = 0; i < TM; i += 4)
                *(float4 *)&a[i] = *(const float4 *)&As[k][m_thread + i * LANES_M];
#pragma unroll
            for (int j = 0; j < TN; j += 4)
                *(float4 *)&b[j] = *(const float4 *)&Bs[k][n_thread + j * LANES_N];
#pragma unroll
            for (int j = 0; j < TN; ++j)
#pragma unroll
                for (int i = 0; i < TM; ++i)
                    sum[i][j] += a[i] * b[j];
        }
        __syncthreads();
    }

    // Write back.
#pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = m0 + m_thread + i / 4 * 4 * LANES_M + i % 4;
        if (row >= M)
            break;
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            const int col = n0 + n_thread + j * LANES_N;
            real *c = C + (size_t)row * N + col;
            float4 old = beta == 0 ? make_float4(0, 0, 0, 0) : load4(c, N - col, vector);
            const float4 value =
                make_float4(alpha * sum[i][j] + beta * old.x, alpha * sum[i][j + 1] + beta * old.y,
                            alpha * sum[i][j + 2] + beta * old.z, alpha * sum[i][j + 3] + beta * old.w);
            if (vector && col < N)
                *(float4 *)c = value;
            else {
                if (col + 0 < N)
                    c[0] = value.x;
                if (col + 1 < N)
                    c[1] = value.y;
                if (col + 2 < N)
                    c[2] = value.z;
                if (col + 3 < N)
                    c[3] = value.w;
            }
        }
    }
}
