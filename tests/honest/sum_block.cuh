// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0

// The sum of a block's values, for its first thread.
static __device__ real sum_block(real value)
{
    __shared__ real sums[128];
    sums[threadIdx.x] = value;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (threadIdx.x < half)
            sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    return sums[0];
}
