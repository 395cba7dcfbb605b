// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0

// A number of FP32 as the sum of two of TF32, each of 11 significant bits: A * B is nearly A_big * B_big + A_big * B_small
// + A_small * B_big, with errors of 2^-22. Tensor cores ignore the last 13 bits of what they are given.

// Round to TF32, halves away from zero; bits that are ignored may be anything.
static __device__ __forceinline__ unsigned rounded(float x)
{
    return __float_as_uint(x) + 0x1000u;
}
// Both parts, the big one rounded, so that the small one has either sign.
static __device__ __forceinline__ void split(float x, unsigned &big, unsigned &small)
{
    big = rounded(x) & 0xffffe000u;
    small = rounded(x - __uint_as_float(big));
}
// What four numbers lack where tensor cores read them as they are.
static __device__ __forceinline__ float small_part(float x)
{
    return __uint_as_float(rounded(x - __uint_as_float(__float_as_uint(x) & 0xffffe000u)));
}
static __device__ __forceinline__ float4 small_parts(float4 x)
{
    return make_float4(small_part(x.x), small_part(x.y), small_part(x.z), small_part(x.w));
}
// Add what tensor cores summed up: they truncate their sums, and this rounds.
template <int COUNT> static __device__ __forceinline__ void add(float (&sum)[COUNT], const float (&part)[COUNT])
{
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
        sum[i] += part[i];
}
