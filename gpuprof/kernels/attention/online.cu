// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "One kernel, online softmax"
operation = "attention"
rung = 20
dtypes = ["bf16", "f16"]
study = "H"
idea = "A block keeps 64 queries and walks over the keys, 64 at a time. What it has summed up is relative to the largest score so far, and scaled down whenever a larger one comes: no score leaves the SM."
after = "three_kernels"
change = "Memory for scores is gone, and with it the traffic: dram_read_bytes and global_store_requests fall."
bottleneck = "FP32 on CUDA cores, which find an operand in shared memory for every second multiplication."
arguments = ["sequence", "causal", "Q", "K", "V", "O"]

[moves]
global_store_requests = "falls"
dram_read_bytes = "falls"

[launch]
block = [256]
grid = ["cdiv(sequence, 64)", "batch * heads"]
dynamic_shared_bytes = "3 * 64 * (D + 2) * real_bytes + 64 * 65 * 4"

[constants]
D = "head"

[[require]]
condition = "D == 64 or D == 128"
because = "{id} has heads of 64 and 128"
*/

#define PITCH (D + 2) // neighbouring rows start one bank apart

extern "C" __global__ void __launch_bounds__(256) online(int sequence, int causal, const real *Q, const real *K, const real *V,
                                                         real *O)
{
    // Coordinates: a thread has 4x4 of a tile of scores, rows ty + 16 i and columns tx + 16 j, and of O the same rows.
    const int tx = threadIdx.x % 16;
    const int ty = threadIdx.x / 16;
    const int row0 = blockIdx.x * 64;
    const size_t head = (size_t)blockIdx.y * sequence * D;

    extern __shared__ __align__(16) real shared[];
    real *Qs = shared;
    real *Ks = Qs + 64 * PITCH;
    real *Vs = Ks + 64 * PITCH;
    float *weights = (float *)(Vs + 64 * PITCH); // 64 rows of 65
    const auto load = [&](real *to, const real *from, int first) {
        for (int i = threadIdx.x; i < 64 * D; i += 256)
            to[i / D * PITCH + i % D] = first + i / D < sequence ? from[head + (size_t)first * D + i] : (real)0.0f;
    };
    load(Qs, Q, row0);

    float out[4][D / 16] = {};
    float top[4], total[4];
    for (int i = 0; i < 4; ++i) {
        top[i] = __int_as_float(0xff800000);
        total[i] = 0;
    }
    for (int key0 = 0; key0 < sequence; key0 += 64) {
        __syncthreads();
        load(Ks, K, key0);
        load(Vs, V, key0);
        __syncthreads();

        // Scores.
        float score[4][4] = {};
#pragma unroll 8
        for (int k = 0; k < D; ++k)
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    score[i][j] += (float)Qs[(ty + 16 * i) * PITCH + k] * (float)Ks[(tx + 16 * j) * PITCH + k];

        // Weights, relative to the largest score so far. Each row belongs to 16 lanes.
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int row = row0 + ty + 16 * i;
            float largest = top[i];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int key = key0 + tx + 16 * j;
                score[i][j] = key < sequence && (!causal || key <= row) ? score[i][j] * rsqrtf(D) : __int_as_float(0xff800000);
                largest = fmaxf(largest, score[i][j]);
            }
#pragma unroll
            for (int lane = 8; lane > 0; lane /= 2)
                largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, lane));
            const float factor = expf(top[i] - largest);
            top[i] = largest;
            total[i] *= factor;
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float weight = expf(score[i][j] - largest);
                total[i] += weight;
                weights[(ty + 16 * i) * 65 + tx + 16 * j] = weight;
            }
#pragma unroll
            for (int j = 0; j < D / 16; ++j)
                out[i][j] *= factor;
        }
        __syncwarp(); // a row's weights come from the warp that reads them

        // Weighted sums.
#pragma unroll 4
        for (int k = 0; k < 64; ++k)
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < D / 16; ++j)
                    out[i][j] += weights[(ty + 16 * i) * 65 + k] * (float)Vs[k * PITCH + tx + 16 * j];
    }

    // Write back.
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int lane = 8; lane > 0; lane /= 2)
            total[i] += __shfl_xor_sync(0xffffffff, total[i], lane);
        const int row = row0 + ty + 16 * i;
        if (row < sequence)
#pragma unroll
            for (int j = 0; j < D / 16; ++j)
                O[head + (size_t)row * D + tx + 16 * j] = (real)(out[i][j] / total[i]);
    }
}
