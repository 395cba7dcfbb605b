// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Decoupled look-back: states of cuda::atomic, a warp looks back over the blocks before"

[workspace.states]
shape = ["4 * rows"]
dtype = "u64"

[[launches]]
entry = "reset"
arguments = ["4 * rows", "states"]
block = [32]
grid = ["1"]

[[launches]]
entry = "decoupled"
arguments = ["columns", "x", "states", "y"]
block = [64]
grid = ["4", "rows"]
*/
#include <cuda/atomic>

// A state is a flag, 1 for the block's own sum and 2 for all sums until there, and the sum's bits.
__device__ unsigned long long packed(unsigned flag, float sum)
{
    return (unsigned long long)flag << 32 | __float_as_uint(sum);
}

__global__ void reset(int n, unsigned long long *states)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        states[i] = 0;
}

__global__ void decoupled(int columns, const float *x, unsigned long long *states, float *y)
{
    using State = cuda::atomic_ref<unsigned long long, cuda::thread_scope_device>;
    __shared__ float of_warp[2], before;
    const int t = threadIdx.x, lane = t % 32, i = blockIdx.x * 64 + t, block = blockIdx.y * 4 + blockIdx.x;
    float v = i < columns ? x[blockIdx.y * columns + i] : 0;
    for (int d = 1; d < 32; d *= 2) {
        const float left = __shfl_up_sync(~0u, v, d);
        v += lane >= d ? left : 0;
    }
    if (lane == 31)
        of_warp[t / 32] = v;
    __syncthreads();
    if (t == 0) {
        const float own = of_warp[0] + of_warp[1];
        State mine(states[block]);
        mine.store(packed(blockIdx.x ? 1 : 2, own), cuda::memory_order_release);
        float sum = 0;
        for (int back = 1; back <= blockIdx.x; ++back) {
            State other(states[block - back]);
            unsigned long long state;
            while ((state = other.load(cuda::memory_order_acquire)) == 0)
                ;
            sum += __uint_as_float((unsigned)state);
            if (state >> 32 == 2)
                break;
        }
        if (blockIdx.x)
            mine.store(packed(2, sum + own), cuda::memory_order_release);
        before = sum;
    }
    __syncthreads();
    if (i < columns)
        y[blockIdx.y * columns + i] = before + (t >= 32 ? of_warp[0] : 0) + v;
}
