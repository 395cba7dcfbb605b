// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
//
// The number that an element is; stands in front of all device code of the measuring side. Compiled with -Dreal for the
// element type; with -DHALF or -DBFLOAT that is the bits of one, which need no header as long as nothing is computed with
// them.

static __device__ double value_of(real element)
{
#ifdef HALF
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(element));
    return value;
#elif defined(BFLOAT)
    return __uint_as_float((unsigned)element << 16);
#else
    return (double)element;
#endif
}
