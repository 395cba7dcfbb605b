// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
//
// The number that an element is; stands in front of all device code of the measuring side. Compiled with -Dreal for the
// element type, and -Dresult_type for that of results. Of a type that C++ lacks only the bits are held, which needs no
// header as long as nothing is computed with them.

struct half_bits {
    unsigned short bits;
    __device__ operator long long() const { return bits; }
};
struct bfloat_bits {
    unsigned short bits;
    __device__ operator long long() const { return bits; }
};
struct e4m3_bits {
    unsigned char bits;
    __device__ operator long long() const { return bits; }
};
struct e5m2_bits {
    unsigned char bits;
    __device__ operator long long() const { return bits; }
};

static __device__ double value_of(half_bits element)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(element.bits));
    return value;
}
static __device__ double value_of(bfloat_bits element)
{
    return __uint_as_float((unsigned)element.bits << 16);
}
static __device__ double value_of(e4m3_bits element)
{
    // A half with the same exponent and fraction is 2^8 times smaller; all ones are NaN, and nothing is infinite.
    const unsigned size = element.bits & 0x7f;
    const half_bits half = {(unsigned short)((element.bits & 0x80) << 8 | (size == 0x7f ? 0x7fff : size << 7))};
    return 256 * value_of(half);
}
static __device__ double value_of(e5m2_bits element)
{
    const half_bits half = {(unsigned short)(element.bits << 8)};
    return value_of(half);
}
template <typename T> static __device__ double value_of(T element)
{
    return (double)element;
}
