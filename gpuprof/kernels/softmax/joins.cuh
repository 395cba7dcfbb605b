// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0

#define WARPS (BLOCK_X / 32)

// The join of a warp's values; every lane gets it.
template <typename Join> static __device__ real join_warp(real value, Join join)
{
#pragma unroll
    for (int lane = 16; lane > 0; lane /= 2)
        value = join(value, __shfl_xor_sync(0xffffffff, value, lane));
    return value;
}

// The join of a block's values; every thread gets it. Each warp joins all warps' values, which saves a barrier.
template <typename Join> static __device__ real join_block(real value, real *shared, Join join)
{
    const int lane = threadIdx.x % 32;
    value = join_warp(value, join);
    if (lane == 0)
        shared[threadIdx.x / 32] = value;
    __syncthreads();
    real joined = shared[0];
#pragma unroll
    for (int warp = 1; warp < WARPS; ++warp)
        joined = join(joined, shared[warp]);
    return joined;
}
