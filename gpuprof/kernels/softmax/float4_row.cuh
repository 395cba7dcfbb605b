// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0

#define NOTHING __int_as_float(0xff800000) // minus infinity: never the maximum, and its exponential is 0

// Four neighbours in a row, of which the first `count` exist; the others change neither maximum nor sum. What
// is touched ONCE need not stay in a cache.
template <bool ONCE = false>
static __device__ __forceinline__ float4 load4(const real *source, int count, bool vector)
{
    if (vector)
        return count <= 0 ? make_float4(NOTHING, NOTHING, NOTHING, NOTHING)
               : ONCE     ? __ldcs((const float4 *)source)
                          : *(const float4 *)source;
    return make_float4(count > 0 ? source[0] : NOTHING, count > 1 ? source[1] : NOTHING,
                       count > 2 ? source[2] : NOTHING, count > 3 ? source[3] : NOTHING);
}

template <bool ONCE = false>
static __device__ __forceinline__ void store4(real *target, float4 value, int count, bool vector)
{
    if (vector) {
        if (count > 0 && ONCE)
            __stcs((float4 *)target, value);
        else if (count > 0)
            *(float4 *)target = value;
    } else {
        if (count > 0)
            target[0] = value.x;
        if (count > 1)
            target[1] = value.y;
        if (count > 2)
            target[2] = value.z;
        if (count > 3)
            target[3] = value.w;
    }
}

static __device__ __forceinline__ real top_of(float4 v)
{
    return max(max(v.x, v.y), max(v.z, v.w));
}

static __device__ __forceinline__ real sum_of(float4 v)
{
    return (v.x + v.y) + (v.z + v.w);
}

static __device__ __forceinline__ float4 exponentials(float4 v, real top)
{
    return make_float4(exp(v.x - top), exp(v.y - top), exp(v.z - top), exp(v.w - top));
}

static __device__ __forceinline__ float4 scaled(float4 v, real scale)
{
    return make_float4(v.x * scale, v.y * scale, v.z * scale, v.w * scale);
}
