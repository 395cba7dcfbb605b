// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Several 4x4 groups per thread"
problem = "gemm"
rung = 230
study = "C"
aliases = ["opencl_10_5"]
idea = "Each thread does the work of float4_4x4 for unroll_m x unroll_n tiles of 64x64 at once."
after = "float4_4x4"
change = "More outputs per thread: every float4 read from shared memory is used for more FMAs, so shared_load_wavefronts and global_load_sectors fall again while registers rise."
bottleneck = "Latency of global loads, with fewer resident warps to hide it as the registers per thread grow."
reference = "Study C, section 10.5; the study unrolls 2 in all"
dtypes = ["f32"]
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]

[moves]
shared_load_wavefronts = "falls"
global_load_sectors = "falls"
registers_per_thread = "rises"

[launch]
block = [16, 16]
grid = ["cdiv(N, 4 * BS * unroll_n)", "cdiv(M, 4 * BS * unroll_m)"]

[parameters]
BS = 16 # edge of the block; its C tile is 4*BS*unroll_m x 4*BS*unroll_n
unroll_m = 2
unroll_n = 1

[candidates]
unroll_m = [1, 2, 4]
unroll_n = [1, 2, 4]

[[require]]
condition = "(BS == 8 or BS == 16) and block_x == BS and block_y == BS"
because = "float4_multi has one thread for 4x4 elements of each tile: BS must be 8 or 16, and the block BS x BS"

[[require]]
condition = "unroll_m >= 1 and unroll_n >= 1"
because = "float4_multi computes at least one tile: unroll_m and unroll_n must be 1 or more"

[[require]]
condition = "unroll_m * unroll_n <= 4"
because = "float4_multi keeps the study's bound, 32 KiB of local memory at 8 KiB per tile where BS is 16: unroll_m * unroll_n must be at most 4"
*/

// Four consecutive elements in global memory, the first `valid` of which are inside the matrix; zeros for the others.
// `aligned`: the leading dimension is a multiple of 4, hence every group of four is wholly inside or wholly outside and
// starts at a multiple of 16 bytes, as device allocations do.
__device__ __forceinline__ float4 load4(const real *from, int valid, bool aligned)
{
    float4 values = {0, 0, 0, 0};
    if (aligned && valid > 0)
        values = *reinterpret_cast<const float4 *>(from);
    const int single = aligned ? 0 : valid; // elements to load one by one
    if (single > 0)
        values.x = from[0];
    if (single > 1)
        values.y = from[1];
    if (single > 2)
        values.z = from[2];
    if (single > 3)
        values.w = from[3];
    return values;
}

// Four consecutive elements of C become alpha * sum + beta * C; with beta = 0 the old content is never read.
__device__ __forceinline__ void update4(real *c, float4 sum, int valid, bool aligned, real alpha, real beta)
{
    if (aligned) {
        if (valid > 0) {
            float4 result = {alpha * sum.x, alpha * sum.y, alpha * sum.z, alpha * sum.w};
            if (beta != 0) {
                const float4 old = *reinterpret_cast<const float4 *>(c);
                result.x += beta * old.x;
                result.y += beta * old.y;
                result.z += beta * old.z;
                result.w += beta * old.w;
            }
            *reinterpret_cast<float4 *>(c) = result;
        }
    } else {
        const real sums[4] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
        for (int i = 0; i < 4; ++i)
            if (i < valid)
                c[i] = beta == 0 ? alpha * sums[i] : alpha * sums[i] + beta * c[i];
    }
}

// One element of A times four of B, added to four sums.
__device__ __forceinline__ void fma4(float4 &sum, real a, float4 b)
{
    sum.x += a * b.x;
    sum.y += a * b.y;
    sum.z += a * b.z;
    sum.w += a * b.w;
}

extern "C" __global__ void __launch_bounds__(BS * BS)
    float4_multi(int M, int N, int K, real alpha, const real *A, const real *B, real beta, real *C)
{
    // Coordinates: this thread's rows are row + 4*BS*u + BS*r and its columns col + 4*BS*v + s,
    // for u = 0 .. unroll_m-1, v = 0 .. unroll_n-1, r and s = 0 .. 3.
    const int tx = threadIdx.x;                              // 0 .. BS-1
    const int ty = threadIdx.y;                              // 0 .. BS-1
    const int col = blockIdx.x * 4 * BS * unroll_n + 4 * tx; // 0 .. N-1
    const int row = blockIdx.y * 4 * BS * unroll_m + ty;     // 0 .. M-1
    const bool aligned = N % 4 == 0;                         // rows of B and C start at multiples of 16 bytes

    // Shared memory: 4 KiB * (unroll_m + unroll_n) where BS is 16.
    __shared__ float4 As[unroll_m][BS][BS]; // (u, ty, k): rows ty, ty + BS, ty + 2*BS and ty + 3*BS of tile row u
    __shared__ float4 Bs[unroll_n][BS][BS]; // (v, k, tx): columns 4*tx .. 4*tx+3 of tile column v

    // Pointers.
    const real *a = A + (size_t)row * K + tx;
    const real *b = B + (size_t)ty * N + col;
    real *c = C + (size_t)row * N + col;
    const size_t group = (size_t)BS * K; // from one of this thread's rows of A to the next, in elements

    float4 sum[unroll_m][unroll_n][4] = {}; // one float4 for each row of each tile
    for (int k0 = 0; k0 < K; k0 += BS) {
        // Load: four rows of A are gathered into one float4, four columns of B lie side by side already.
        const bool inside = k0 + tx < K;
#pragma unroll
        for (int u = 0; u < unroll_m; ++u) {
            const int first = row + 4 * BS * u;
            const real *a_u = a + 4 * u * group;
            float4 a4 = {0, 0, 0, 0};
            if (inside && first < M)
                a4.x = a_u[0];
            if (inside && first + BS < M)
                a4.y = a_u[group];
            if (inside && first + 2 * BS < M)
                a4.z = a_u[2 * group];
            if (inside && first + 3 * BS < M)
                a4.w = a_u[3 * group];
            As[u][ty][tx] = a4;
        }
#pragma unroll
        for (int v = 0; v < unroll_n; ++v)
            Bs[v][ty][tx] = load4(b + 4 * BS * v, k0 + ty < K ? N - col - 4 * BS * v : 0, aligned);
        a += BS;
        b += (size_t)BS * N;
        __syncthreads();

        // Compute: 16*unroll_m*unroll_n FMAs from unroll_m + unroll_n shared loads.
#pragma unroll
        for (int k = 0; k < BS; ++k) {
            float4 b_k[unroll_n];
#pragma unroll
            for (int v = 0; v < unroll_n; ++v)
                b_k[v] = Bs[v][k][tx];
#pragma unroll
            for (int u = 0; u < unroll_m; ++u) {
                const float4 a_k = As[u][ty][k];
#pragma unroll
                for (int v = 0; v < unroll_n; ++v) {
                    fma4(sum[u][v][0], a_k.x, b_k[v]);
                    fma4(sum[u][v][1], a_k.y, b_k[v]);
                    fma4(sum[u][v][2], a_k.z, b_k[v]);
                    fma4(sum[u][v][3], a_k.w, b_k[v]);
                }
            }
        }
        __syncthreads();
    }

    // Write back.
#pragma unroll
    for (int u = 0; u < unroll_m; ++u)
#pragma unroll
        for (int r = 0; r < 4; ++r) {
            const int step = 4 * BS * u + BS * r; // from this thread's first row, in rows
            if (row + step >= M)
                continue;
#pragma unroll
            for (int v = 0; v < unroll_n; ++v)
                update4(c + (size_t)step * N + 4 * BS * v, sum[u][v][r], N - col - 4 * BS * v, aligned, alpha, beta);
        }
}
