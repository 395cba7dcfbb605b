// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
#pragma once
namespace c10 {
template <bool> struct GpuprofIf {};
template <> struct GpuprofIf<true> { using type = int; };
template <typename T> using GpuprofNumber = typename GpuprofIf<!__is_class(T)>::type;
// A half as its bits, of which a source may take hold.
template <typename Native> struct alignas(2) HalfOf {
    unsigned short x;
    struct from_bits_t {};
    __host__ __device__ static constexpr from_bits_t from_bits() { return {}; }
    HalfOf() = default;
    __host__ __device__ constexpr HalfOf(unsigned short bits, from_bits_t) : x(bits) {}
    __host__ __device__ HalfOf(const Native &value) { memcpy(&x, &value, 2); }
    __host__ __device__ HalfOf(float value) : HalfOf(Native(value)) {}
    __host__ __device__ operator Native() const
    {
        Native value;
        memcpy(&value, &x, 2);
        return value;
    }
    __host__ __device__ operator float() const { return operator Native(); }
    __host__ __device__ HalfOf operator-() const { return -float(*this); }
#define GPUPROF_HALF_OPERATOR(op, Result)                                                                    \
    __host__ __device__ friend Result operator op(HalfOf a, HalfOf b) { return float(a) op float(b); }       \
    template <typename T, GpuprofNumber<T> = 0> __host__ __device__ friend auto operator op(HalfOf a, T b)   \
    {                                                                                                        \
        return float(a) op b;                                                                                \
    }                                                                                                        \
    template <typename T, GpuprofNumber<T> = 0> __host__ __device__ friend auto operator op(T a, HalfOf b)   \
    {                                                                                                        \
        return a op float(b);                                                                                \
    }
#define GPUPROF_HALF_ASSIGNMENT(op)                                                                          \
    GPUPROF_HALF_OPERATOR(op, HalfOf)                                                                        \
    template <typename T> __host__ __device__ HalfOf &operator op##=(T b) { return *this = *this op b; }
    GPUPROF_HALF_ASSIGNMENT(+)
    GPUPROF_HALF_ASSIGNMENT(-)
    GPUPROF_HALF_ASSIGNMENT(*)
    GPUPROF_HALF_ASSIGNMENT(/)
    GPUPROF_HALF_OPERATOR(==, bool)
    GPUPROF_HALF_OPERATOR(!=, bool)
    GPUPROF_HALF_OPERATOR(<, bool)
    GPUPROF_HALF_OPERATOR(<=, bool)
    GPUPROF_HALF_OPERATOR(>, bool)
    GPUPROF_HALF_OPERATOR(>=, bool)
#undef GPUPROF_HALF_OPERATOR
#undef GPUPROF_HALF_ASSIGNMENT
};
} // namespace c10
namespace at {
template <typename Native> struct OpMathType<c10::HalfOf<Native>> { using type = float; };
}
template <typename Native> __device__ c10::HalfOf<Native> __ldg(const c10::HalfOf<Native> *at)
{
    return __ldg((const Native *)at);
}
template <typename Native> __device__ c10::HalfOf<Native> atomicAdd(c10::HalfOf<Native> *at, c10::HalfOf<Native> b)
{
    return atomicAdd((Native *)at, Native(b));
}
