// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0

// The sum of a block's values; the first thread gets it.
static __device__ real sum_block(real value)
{
    __shared__ real sums[WARPS];
#pragma unroll
    for (int lane = 16; lane > 0; lane /= 2)
        value += __shfl_down_sync(0xffffffff, value, lane);
    if (threadIdx.x % 32 == 0)
        sums[threadIdx.x / 32] = value;
    __syncthreads();
    real sum = 0;
    if (threadIdx.x == 0)
#pragma unroll
        for (int warp = 0; warp < WARPS; ++warp)
            sum += sums[warp];
    return sum;
}
