// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
//
// The number that an element is; stands in front of all device code of the measuring side. Compiled with -Dreal for the
// element type, and -Dresult_type for that of results. Of a type that C++ lacks only the bits are held, which needs no
// header as long as nothing is computed with them.

// A sign, an exponent and a fraction. Of a finite type all ones are NaN, and nothing is infinite.
template <typename Bits, int exponent, int fraction, bool finite> struct float_bits {
    Bits bits;
    __device__ operator long long() const { return bits; }
};

template <typename Bits, int exponent, int fraction, bool finite>
static __device__ double value_of(float_bits<Bits, exponent, fraction, finite> element)
{
    if (exponent == 8)
        return __uint_as_float((unsigned)element.bits << (23 - fraction));
    // A half with the same exponent and fraction is a power of two smaller.
    const unsigned ones = (1u << (exponent + fraction)) - 1, size = element.bits & ones;
    const unsigned sign = (element.bits & (ones + 1)) << (15 - exponent - fraction);
    float half;
    asm("cvt.f32.f16 %0, %1;"
        : "=f"(half)
        : "h"((unsigned short)(sign | (finite && size == ones ? 0x7fff : size << (10 - fraction)))));
    return half * (1 << (16 - (1 << (exponent - 1))));
}
template <typename T> static __device__ double value_of(T element)
{
    return (double)element;
}
