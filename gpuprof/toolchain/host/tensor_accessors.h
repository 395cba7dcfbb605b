// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
#pragma once
namespace at {
template <typename T> struct DefaultPtrTraits {
    using PtrType = T *;
};
template <typename T> struct RestrictPtrTraits {
    using PtrType = T *__restrict__;
};
// What an accessor without its first axes is.
template <typename T, size_t N, template <typename> class Traits, typename Index> struct TensorAccessor {
    typename Traits<T>::PtrType data_;
    const Index *sizes_, *strides_;
    __device__ Index size(int axis) const { return sizes_[axis]; }
    __device__ Index stride(int axis) const { return strides_[axis]; }
    __device__ auto data() const { return data_; }
    __device__ decltype(auto) operator[](Index i) const
    {
        if constexpr (N == 1)
            return (data_[i * strides_[0]]);
        else
            return TensorAccessor<T, N - 1, Traits, Index>{data_ + i * strides_[0], sizes_ + 1, strides_ + 1};
    }
};
// A kernel gets it by value: an address, extents, strides in elements.
template <typename T, size_t N, template <typename> class Traits, typename Index>
struct GenericPackedTensorAccessor {
    typename Traits<T>::PtrType data_;
    Index sizes_[N], strides_[N];
    __device__ Index size(int axis) const { return sizes_[axis]; }
    __device__ Index stride(int axis) const { return strides_[axis]; }
    __device__ auto data() const { return data_; }
    __device__ decltype(auto) operator[](Index i) const
    {
        return TensorAccessor<T, N, Traits, Index>{data_, sizes_, strides_}[i];
    }
};
template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, Traits, int>;
template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, Traits, long long>;
template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits, typename Index = long long>
using PackedTensorAccessor = GenericPackedTensorAccessor<T, N, Traits, Index>;
}
namespace torch {
using namespace at;
}
