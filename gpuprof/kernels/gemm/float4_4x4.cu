// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "4x4 outputs per thread from float4 tiles"
problem = "gemm"
rung = 220
study = "C"
aliases = ["opencl_10_4"]
idea = "Each thread computes 16 elements: four rows 16 apart times four neighbouring columns, from one float4 of A and one of B per k."
after = "smem_tiled_16"
change = "The C tile grows to 64x64 with the same 256 threads: two 16-byte shared loads feed 16 FMAs, so shared_load_wavefronts fall, and global_load_sectors fall to a quarter."
bottleneck = "Latency of global loads: nothing is computed while a tile is on its way."
reference = "Study C, section 10.4"
dtypes = ["f32"]
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]

[moves]
shared_load_wavefronts = "falls"
global_load_sectors = "falls"
registers_per_thread = "rises"

[launch]
block = [16, 16]
grid = ["cdiv(N, 4 * BS)", "cdiv(M, 4 * BS)"]

[parameters]
BS = 16 # edge of the block; its C tile is 4*BS x 4*BS

[[require]]
condition = "block_x == BS and block_y == BS"
because = "float4_4x4 has one thread for 4x4 elements of a square tile: the block must be BS x BS"
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
    float4_4x4(int M, int N, int K, real alpha, const real *A, const real *B, real beta, real *C)
{
    // Coordinates: this thread's rows are row + BS*r and its columns col + s, for r and s = 0 .. 3.
    const int tx = threadIdx.x;                   // 0 .. BS-1
    const int ty = threadIdx.y;                   // 0 .. BS-1
    const int col = blockIdx.x * 4 * BS + 4 * tx; // 0 .. N-1
    const int row = blockIdx.y * 4 * BS + ty;     // 0 .. M-1
    const bool aligned = N % 4 == 0;              // rows of B and C start at multiples of 16 bytes

    // Shared memory: 8 KiB where BS is 16.
    __shared__ float4 As[BS][BS]; // (ty, k): rows ty, ty + BS, ty + 2*BS and ty + 3*BS of the C tile
    __shared__ float4 Bs[BS][BS]; // (k, tx): columns 4*tx .. 4*tx+3 of the C tile

    // Pointers.
    const real *a = A + (size_t)row * K + tx;
    const real *b = B + (size_t)ty * N + col;
    real *c = C + (size_t)row * N + col;
    const size_t group = (size_t)BS * K; // from one of this thread's rows of A to the next, in elements

    float4 sum[4] = {}; // one float4 for each row
    for (int k0 = 0; k0 < K; k0 += BS) {
        // Load: four rows of A are gathered into one float4, four columns of B lie side by side already.
        const bool inside = k0 + tx < K;
        float4 a4 = {0, 0, 0, 0};
        if (inside && row < M)
            a4.x = a[0];
        if (inside && row + BS < M)
            a4.y = a[group];
        if (inside && row + 2 * BS < M)
            a4.z = a[2 * group];
        if (inside && row + 3 * BS < M)
            a4.w = a[3 * group];
        As[ty][tx] = a4;
        Bs[ty][tx] = load4(b, k0 + ty < K ? N - col : 0, aligned);
        a += BS;
        b += (size_t)BS * N;
        __syncthreads();

        // Compute: 16 FMAs from two shared loads; a half-warp shares its float4 of A.
#pragma unroll
        for (int k = 0; k < BS; ++k) {
            const float4 a_k = As[ty][k];
            const float4 b_k = Bs[k][tx];
            fma4(sum[0], a_k.x, b_k);
            fma4(sum[1], a_k.y, b_k);
            fma4(sum[2], a_k.z, b_k);
            fma4(sum[3], a_k.w, b_k);
        }
        __syncthreads();
    }

    // Write back.
#pragma unroll
    for (int r = 0; r < 4; ++r)
        if (row + r * BS < M)
            update4(c + (size_t)r * BS * N, sum[r], N - col, aligned, alpha, beta);
}
