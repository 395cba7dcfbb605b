// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
#pragma once
namespace c10 {
template <typename T> struct alignas(2 * sizeof(T)) complex {
    using value_type = T;
    T real_, imag_;
    __host__ __device__ constexpr complex(T real = 0, T imag = 0) : real_(real), imag_(imag) {}
    template <typename U>
    __host__ __device__ explicit constexpr complex(const complex<U> &other)
        : real_(other.real_), imag_(other.imag_)
    {
    }
    __host__ __device__ constexpr T real() const { return real_; }
    __host__ __device__ constexpr T imag() const { return imag_; }
    __host__ __device__ constexpr complex &operator+=(const complex &b) { return *this = *this + b; }
    __host__ __device__ constexpr complex &operator-=(const complex &b) { return *this = *this - b; }
    __host__ __device__ constexpr complex &operator*=(const complex &b) { return *this = *this * b; }
    __host__ __device__ constexpr complex &operator/=(const complex &b) { return *this = *this / b; }
    __host__ __device__ constexpr complex operator-() const { return {-real_, -imag_}; }
    friend __host__ __device__ constexpr complex operator+(const complex &a, const complex &b)
    {
        return {a.real_ + b.real_, a.imag_ + b.imag_};
    }
    friend __host__ __device__ constexpr complex operator-(const complex &a, const complex &b)
    {
        return {a.real_ - b.real_, a.imag_ - b.imag_};
    }
    friend __host__ __device__ constexpr complex operator*(const complex &a, const complex &b)
    {
        return {a.real_ * b.real_ - a.imag_ * b.imag_, a.real_ * b.imag_ + a.imag_ * b.real_};
    }
    friend __host__ __device__ constexpr complex operator/(const complex &a, const complex &b)
    {
        const T scale = b.real_ * b.real_ + b.imag_ * b.imag_;
        const complex product = a * complex(b.real_, -b.imag_);
        return {product.real_ / scale, product.imag_ / scale};
    }
    friend __host__ __device__ constexpr bool operator==(const complex &a, const complex &b)
    {
        return a.real_ == b.real_ && a.imag_ == b.imag_;
    }
    friend __host__ __device__ constexpr bool operator!=(const complex &a, const complex &b)
    {
        return !(a == b);
    }
};
}
