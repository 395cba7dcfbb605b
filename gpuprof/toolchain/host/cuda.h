// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
#pragma once
using CUtexObject = unsigned long long;
using CUsurfObject = unsigned long long;
using CUdeviceptr = unsigned long long;
struct alignas(64) CUtensorMap {
    unsigned long long opaque[16];
};
#ifndef CUDA_VERSION
#define CUDA_VERSION CUDART_VERSION
#endif
