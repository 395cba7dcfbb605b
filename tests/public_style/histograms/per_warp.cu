// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Bins of each warp's own, in bytes of 32-bit words, added up at the end"
arguments = ["n", "data", "counts"]

[launch]
block = [128]
grid = ["1"]
*/
__global__ void per_warp(int n, const int *data, int *counts)
{
    __shared__ unsigned s_hist[4][32]; // two counters of 16 bits in a word
    unsigned *own = s_hist[threadIdx.x >> 5];
    own[threadIdx.x & 31] = 0;
    __syncwarp();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        atomicAdd(own + (data[i] >> 1), 1u << (16 * (data[i] & 1)));
    __syncthreads();
    if (threadIdx.x < 64) {
        unsigned sum = 0;
#pragma unroll
        for (int w = 0; w < 4; ++w)
            sum += s_hist[w][threadIdx.x >> 1] >> (16 * (threadIdx.x & 1)) & 0xffff;
        counts[threadIdx.x] = sum;
    }
}
