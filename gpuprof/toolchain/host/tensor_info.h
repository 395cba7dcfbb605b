// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
#pragma once
#define MAX_TENSORINFO_DIMS 25
namespace at {
namespace cuda {
namespace detail {
template <typename T, typename Index> struct TensorInfo {
    T *data;
    Index sizes[MAX_TENSORINFO_DIMS], strides[MAX_TENSORINFO_DIMS];
    int dims;
};
// Where an element stands by its number, row by row; of so many axes, or of as many as there are.
template <typename T, typename Index, int axes> struct IndexToOffset {
    __host__ __device__ static Index get(Index number, const TensorInfo<T, Index> &info)
    {
        Index offset = 0;
        for (int axis = (axes < 0 ? info.dims : axes) - 1; axis > 0; --axis) {
            offset += number % info.sizes[axis] * info.strides[axis];
            number /= info.sizes[axis];
        }
        return offset + number * info.strides[0];
    }
};
} // namespace detail
} // namespace cuda
} // namespace at
