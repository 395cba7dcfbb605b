// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
#pragma once
#define GPUPROF_WARP_SHUFFLE(name, shuffle, lane)                                          \
    template <typename T>                                                                  \
    __device__ T name(T value, lane, int width = warpSize, unsigned mask = 0xffffffff)     \
    {                                                                                      \
        return shuffle(mask, value, from, width);                                          \
    }
GPUPROF_WARP_SHUFFLE(WARP_SHFL, __shfl_sync, int from)
GPUPROF_WARP_SHUFFLE(WARP_SHFL_XOR, __shfl_xor_sync, int from)
GPUPROF_WARP_SHUFFLE(WARP_SHFL_UP, __shfl_up_sync, unsigned from)
GPUPROF_WARP_SHUFFLE(WARP_SHFL_DOWN, __shfl_down_sync, unsigned from)
#undef GPUPROF_WARP_SHUFFLE
__device__ inline unsigned WARP_BALLOT(int predicate, unsigned mask = 0xffffffff)
{
    return __ballot_sync(mask, predicate);
}
__device__ inline unsigned ACTIVE_MASK() { return __activemask(); }
template <typename T> __device__ T doLdg(const T *at) { return __ldg(at); }
template <typename T> __device__ T gpuAtomicAdd(T *at, T value) { return atomicAdd(at, value); }
template <typename T> __device__ void gpuAtomicAddNoReturn(T *at, T value) { atomicAdd(at, value); }
namespace at {
template <typename T> __host__ __device__ constexpr T ceil_div(T a, T b) { return (a + b - 1) / b; }
} // namespace at
