// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
#pragma once
using CUtexObject = unsigned long long;
using CUsurfObject = unsigned long long;
using CUdeviceptr = unsigned long long;
// As CUDA's C++ library declares it.
typedef struct alignas(64) CUtensorMap_st {
    unsigned long long opaque[16];
} CUtensorMap;
#ifndef CUDA_VERSION
#define CUDA_VERSION CUDART_VERSION
#endif
