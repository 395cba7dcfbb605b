// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "stdint.h"
using uchar = unsigned char;
using schar = signed char;
using int64 = int64_t;
using uint64 = uint64_t;
#ifndef CV_PI
#define CV_PI 3.1415926535897932384626433832795
#endif
namespace cv {
namespace cuda {
// A kernel gets these by value: an address, bytes from row to row, columns, rows.
template <typename T> struct DevPtr {
    using elem_type = T;
    T *data;
    __device__ operator T *() { return data; }
    __device__ operator const T *() const { return data; }
};
template <typename T> struct PtrSz : DevPtr<T> {
    size_t size;
};
template <typename T> struct PtrStep : DevPtr<T> {
    size_t step;
    __device__ T *ptr(int y = 0) { return (T *)((char *)this->data + y * step); }
    __device__ const T *ptr(int y = 0) const { return (const T *)((const char *)this->data + y * step); }
    __device__ T &operator()(int y, int x) { return ptr(y)[x]; }
    __device__ const T &operator()(int y, int x) const { return ptr(y)[x]; }
};
template <typename T> struct PtrStepSz : PtrStep<T> {
    int cols;
    int rows;
};
using PtrStepSzb = PtrStepSz<unsigned char>;
using PtrStepSzf = PtrStepSz<float>;
using PtrStepSzi = PtrStepSz<int>;
using PtrStepb = PtrStep<unsigned char>;
using PtrStepf = PtrStep<float>;
using PtrStepi = PtrStep<int>;
}
using namespace cuda;
}
