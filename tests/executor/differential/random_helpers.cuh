// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// What every random kernel starts with. NaNs are stored as one pattern, because PTX leaves that of `neg` and
// `abs` open; divisions and roots get operands of a size for which hardware takes its common path.

__constant__ unsigned table[64] = {
    11, 97, 5, 61, 3, 40, 88, 17, 29, 2, 73, 54, 90, 31, 7, 66, 45, 12, 99, 83, 20, 58, 36, 1, 77, 94, 6, 49,
    15, 62, 33, 80, 9, 71, 24, 57, 42, 18, 85, 30, 64, 4, 93, 26, 50, 70, 13, 38, 81, 22, 59, 8, 47, 95, 34,
    16, 75, 28, 60, 10, 87, 41, 53, 19};
__device__ unsigned bits(float v) { return v == v ? __float_as_uint(v) : 0x7fffffffu; }
__device__ unsigned long long bits(double v)
{
    return v == v ? (unsigned long long)__double_as_longlong(v) : 0x7fffffffffffffffull;
}
__device__ unsigned fold(unsigned long long v) { return (unsigned)v ^ (unsigned)(v >> 32); }
__device__ float tame(float v) { return fminf(fmaxf(v, -1000.0f), 1000.0f); }
__device__ double tame(double v) { return fmin(fmax(v, -1000.0), 1000.0); }
__device__ float plain(float v) { return fabsf(v) < 0.001f ? 0.5f : tame(v); }
__device__ double plain(double v) { return fabs(v) < 0.001 ? 0.5 : tame(v); }
__device__ unsigned short half_of(float v)
{
    unsigned short h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(v));
    return h;
}
__device__ float from_half(unsigned short h)
{
    float v;
    asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(h));
    return v;
}
__device__ unsigned short half_fma(unsigned short x, unsigned short y, unsigned short z)
{
    unsigned short h;
    asm("fma.rn.f16 %0, %1, %2, %3;" : "=h"(h) : "h"(x), "h"(y), "h"(z));
    return h;
}
__device__ unsigned short half_add(unsigned short x, unsigned short y)
{
    unsigned short h;
    asm("add.rn.f16 %0, %1, %2;" : "=h"(h) : "h"(x), "h"(y));
    return h;
}
template <int size, bool global_only> __device__ void copy(void *to, const void *from)
{
    const unsigned place = (unsigned)__cvta_generic_to_shared(to);
    if (global_only)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(from) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(place), "l"(from), "n"(size)
                     : "memory");
}
template <int size, bool global_only> __device__ void copy_cut(void *to, const void *from, unsigned read)
{
    const unsigned place = (unsigned)__cvta_generic_to_shared(to);
    if (global_only)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place), "l"(from), "r"(read)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                     :
                     : "r"(place), "l"(from), "n"(size), "r"(read)
                     : "memory");
}
__device__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int newest> __device__ void wait_for_all_but()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(newest) : "memory");
}
template <int number, int count> __device__ void barrier()
{
    asm volatile("bar.sync %0, %1;" ::"n"(number), "n"(count) : "memory");
}
template <int number, int count> __device__ void arrive()
{
    asm volatile("bar.arrive %0, %1;" ::"n"(number), "n"(count) : "memory");
}
template <int rounds> __device__ unsigned mixed(unsigned v)
{
    for (int k = 0; k < rounds; ++k)
        v = (v ^ (v >> 15)) * 0x2c1b3c6du + k;
    return v;
}
