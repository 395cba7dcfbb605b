// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cuda.h"
#ifndef C10_HOST_DEVICE
#define C10_HOST_DEVICE __host__ __device__
#endif
#ifndef C10_DEVICE
#define C10_DEVICE __device__
#endif
#ifndef C10_HOST
#define C10_HOST __host__
#endif
#ifndef C10_WARP_SIZE
#define C10_WARP_SIZE 32
#endif
#define C10_LAUNCH_BOUNDS_0
#define C10_LAUNCH_BOUNDS_1(threads) __launch_bounds__(threads)
#define C10_LAUNCH_BOUNDS_2(threads, blocks) __launch_bounds__(threads, blocks)
#define CUDA_KERNEL_LOOP(i, n) \
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < (n); \
         i += (long long)blockDim.x * gridDim.x)
#define CUDA_KERNEL_ASSERT(condition) assert(condition)
struct __half;
struct __nv_bfloat16;
namespace at {
template <typename T> struct OpMathType { using type = T; };
template <> struct OpMathType<__half> { using type = float; };
template <> struct OpMathType<__nv_bfloat16> { using type = float; };
template <typename T> using opmath_type = typename OpMathType<T>::type;
template <typename T, bool on_device> using acc_type = opmath_type<T>;
} // namespace at
