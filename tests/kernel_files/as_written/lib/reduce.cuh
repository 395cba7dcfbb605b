// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <iostream>
#include "detail.cuh"
namespace lib {
inline void report(float x) { std::cout << x << std::endl; }
template <int N> __device__ float block_sum(float x)
{
    __shared__ float parts[N];
    parts[threadIdx.x] = x;
    for (int i = N / 2; i > 0; i /= 2) {
        __syncthreads();
        if (threadIdx.x < i)
            detail::add(parts[threadIdx.x], parts[threadIdx.x + i]);
    }
    return parts[0];
}
}
