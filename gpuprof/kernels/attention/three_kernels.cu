// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Scores, softmax, output"
operation = "attention"
rung = 10
dtypes = ["bf16", "f16"]
idea = "The formula as it stands: one kernel for all scores, one that makes weights of each row, one for the weighted sums of V."
change = "Nothing yet: what the others are held against."
bottleneck = "FP32 on CUDA cores; and the scores, sequence x sequence of each head, which cross memory four times."

[workspace.S]
shape = ["batch * heads", "sequence", "sequence"]
dtype = "f32"

[[launches]]
entry = "scores"
arguments = ["sequence", "Q", "K", "S"]
block = [256]
grid = ["cdiv(sequence, 64)", "cdiv(sequence, 64)", "batch * heads"]

[[launches]]
entry = "softmax"
arguments = ["sequence", "causal", "S"]
block = [256]
grid = ["sequence", "batch * heads"]

[[launches]]
entry = "weighted_sums"
arguments = ["sequence", "S", "V", "O"]
block = [256]
grid = ["D // 64", "cdiv(sequence, 64)", "batch * heads"]

[constants]
D = "head"

[[require]]
condition = "D == 64 or D == 128"
because = "{id} has heads of 64 and 128"
*/

#define DEPTH 16

// A 64x64 tile of a product, 4x4 sums for each of 256 threads: sum[i][j] is of row ty + 16 i and column tx + 16 j. left(row, k)
// tells an element within the tile, right(Bs, i, k0) stores the i-th of its tile; what lies outside the matrices is 0.
template <typename Left, typename Right>
static __device__ __forceinline__ void multiply_tile(float (&sum)[4][4], int depth, Left left, Right right)
{
    __shared__ float As[DEPTH][64 + 1];
    __shared__ float Bs[DEPTH][64 + 1];
    const int tx = threadIdx.x % 16;
    const int ty = threadIdx.x / 16;
    for (int k0 = 0; k0 < depth; k0 += DEPTH) {
        for (int i = threadIdx.x; i < 64 * DEPTH; i += 256) {
            As[i % DEPTH][i / DEPTH] = left(i / DEPTH, k0 + i % DEPTH);
            right(Bs, i, k0);
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < DEPTH; ++k)
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    sum[i][j] += As[k][ty + 16 * i] * Bs[k][tx + 16 * j];
        __syncthreads();
    }
}

// S = Q K^T / sqrt(D).
extern "C" __global__ void scores(int sequence, const real *Q, const real *K, float *S)
{
    Q += (size_t)blockIdx.z * sequence * D;
    K += (size_t)blockIdx.z * sequence * D;
    S += (size_t)blockIdx.z * sequence * sequence;
    const int row0 = blockIdx.y * 64;
    const int key0 = blockIdx.x * 64;
    float sum[4][4] = {};
    multiply_tile(
        sum, D, [&](int row, int k) { return row0 + row < sequence ? (float)Q[(size_t)(row0 + row) * D + k] : 0; },
        [&](float (&Bs)[DEPTH][64 + 1], int i, int k0) {
            const int key = key0 + i / DEPTH;
            Bs[i % DEPTH][i / DEPTH] = key < sequence ? (float)K[(size_t)key * D + k0 + i % DEPTH] : 0;
        });
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) {
            const int row = row0 + threadIdx.x / 16 + 16 * i;
            const int key = key0 + threadIdx.x % 16 + 16 * j;
            if (row < sequence && key < sequence)
                S[(size_t)row * sequence + key] = sum[i][j] * rsqrtf(D);
        }
}

// The join of a block's values; every thread gets it.
template <typename Join> static __device__ float join_block(float value, Join join)
{
    __shared__ float shared[8];
    for (int lane = 16; lane > 0; lane /= 2)
        value = join(value, __shfl_xor_sync(0xffffffff, value, lane));
    __syncthreads(); // the values before have been read
    if (threadIdx.x % 32 == 0)
        shared[threadIdx.x / 32] = value;
    __syncthreads();
    float joined = shared[0];
    for (int warp = 1; warp < 8; ++warp)
        joined = join(joined, shared[warp]);
    return joined;
}

// Scores of a row become weights whose sum is 1.
extern "C" __global__ void softmax(int sequence, int causal, float *S)
{
    S += ((size_t)blockIdx.y * sequence + blockIdx.x) * sequence;
    const int end = causal ? blockIdx.x + 1 : sequence;
    float top = __int_as_float(0xff800000);
    for (int key = threadIdx.x; key < end; key += 256)
        top = fmaxf(top, S[key]);
    top = join_block(top, [](float a, float b) { return fmaxf(a, b); });
    float sum = 0;
    for (int key = threadIdx.x; key < end; key += 256)
        sum += S[key] = expf(S[key] - top);
    sum = join_block(sum, [](float a, float b) { return a + b; });
    for (int key = threadIdx.x; key < sequence; key += 256)
        S[key] = key < end ? S[key] / sum : 0;
}

// O = S V.
extern "C" __global__ void weighted_sums(int sequence, const float *S, const real *V, real *O)
{
    S += (size_t)blockIdx.z * sequence * sequence;
    V += (size_t)blockIdx.z * sequence * D;
    O += (size_t)blockIdx.z * sequence * D;
    const int row0 = blockIdx.y * 64;
    const int column0 = blockIdx.x * 64;
    float sum[4][4] = {};
    multiply_tile(
        sum, sequence,
        [&](int row, int k) { return row0 + row < sequence && k < sequence ? S[(size_t)(row0 + row) * sequence + k] : 0; },
        [&](float (&Bs)[DEPTH][64 + 1], int i, int k0) {
            const int k = k0 + i / 64;
            Bs[i / 64][i % 64] = k < sequence ? (float)V[(size_t)k * D + column0 + i % 64] : 0;
        });
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) {
            const int row = row0 + threadIdx.x / 16 + 16 * i;
            if (row < sequence)
                O[(size_t)row * D + column0 + threadIdx.x % 16 + 16 * j] = (real)sum[i][j];
        }
}
