// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arithmetic of CUDA's vectors, as NVIDIA's samples have it for kernels.
using uint = unsigned;
#define GPUPROF_INLINE __host__ __device__ inline
#define GPUPROF_2(part, sign) part(x, sign), part(y, sign)
#define GPUPROF_3(part, sign) GPUPROF_2(part, sign), part(z, sign)
#define GPUPROF_4(part, sign) GPUPROF_3(part, sign), part(w, sign)
#define GPUPROF_BOTH(axis, sign) a.axis sign b.axis
#define GPUPROF_RIGHT(axis, sign) a.axis sign b
#define GPUPROF_LEFT(axis, sign) a sign b.axis
#define GPUPROF_NEGATIVE(axis, sign) -a.axis
#define GPUPROF_SAME(axis, sign) s
#define GPUPROF_MIN(axis, sign) a.axis < b.axis ? a.axis : b.axis
#define GPUPROF_MAX(axis, sign) a.axis < b.axis ? b.axis : a.axis
#define GPUPROF_FLOOR(axis, sign) floorf(v.axis)
#define GPUPROF_ABS(axis, sign) fabsf(v.axis)
#define GPUPROF_CALL(axis, function) function(a.axis, b.axis)
#define GPUPROF_SUM_2 a.x * b.x + a.y * b.y
#define GPUPROF_SUM_3 GPUPROF_SUM_2 + a.z * b.z
#define GPUPROF_SUM_4 GPUPROF_SUM_3 + a.w * b.w
#define GPUPROF_SIGN(vector, scalar, count, sign) \
    GPUPROF_INLINE vector operator sign(vector a, vector b) { return make_##vector(GPUPROF_##count(GPUPROF_BOTH, sign)); } \
    GPUPROF_INLINE vector operator sign(vector a, scalar b) { return make_##vector(GPUPROF_##count(GPUPROF_RIGHT, sign)); } \
    GPUPROF_INLINE vector operator sign(scalar a, vector b) { return make_##vector(GPUPROF_##count(GPUPROF_LEFT, sign)); } \
    GPUPROF_INLINE void operator sign##=(vector &a, vector b) { a = a sign b; } \
    GPUPROF_INLINE void operator sign##=(vector &a, scalar b) { a = a sign b; }
#define GPUPROF_VECTOR(vector, scalar, count) \
    GPUPROF_SIGN(vector, scalar, count, +) \
    GPUPROF_SIGN(vector, scalar, count, -) \
    GPUPROF_SIGN(vector, scalar, count, *) \
    GPUPROF_SIGN(vector, scalar, count, /) \
    GPUPROF_INLINE vector operator-(vector a) { return make_##vector(GPUPROF_##count(GPUPROF_NEGATIVE, -)); } \
    GPUPROF_INLINE vector make_##vector(scalar s) { return make_##vector(GPUPROF_##count(GPUPROF_SAME, -)); } \
    GPUPROF_INLINE vector min(vector a, vector b) { return make_##vector(GPUPROF_##count(GPUPROF_MIN, -)); } \
    GPUPROF_INLINE vector max(vector a, vector b) { return make_##vector(GPUPROF_##count(GPUPROF_MAX, -)); } \
    GPUPROF_INLINE vector clamp(vector v, vector a, vector b) { return max(a, min(v, b)); } \
    GPUPROF_INLINE vector clamp(vector v, scalar a, scalar b) { return clamp(v, make_##vector(a), make_##vector(b)); } \
    GPUPROF_INLINE scalar dot(vector a, vector b) { return GPUPROF_SUM_##count; }
#define GPUPROF_FLOATS(vector, count) \
    GPUPROF_VECTOR(vector, float, count) \
    GPUPROF_INLINE float length(vector v) { return sqrtf(dot(v, v)); } \
    GPUPROF_INLINE vector normalize(vector v) { return v * rsqrtf(dot(v, v)); } \
    GPUPROF_INLINE vector lerp(vector a, vector b, float t) { return a + t * (b - a); } \
    GPUPROF_INLINE vector fminf(vector a, vector b) { return make_##vector(GPUPROF_##count(GPUPROF_CALL, fminf)); } \
    GPUPROF_INLINE vector fmaxf(vector a, vector b) { return make_##vector(GPUPROF_##count(GPUPROF_CALL, fmaxf)); } \
    GPUPROF_INLINE vector fmodf(vector a, vector b) { return make_##vector(GPUPROF_##count(GPUPROF_CALL, fmodf)); } \
    GPUPROF_INLINE vector floorf(vector v) { return make_##vector(GPUPROF_##count(GPUPROF_FLOOR, -)); } \
    GPUPROF_INLINE vector fabs(vector v) { return make_##vector(GPUPROF_##count(GPUPROF_ABS, -)); }
#define GPUPROF_LONGER(kind, scalar) \
    GPUPROF_INLINE kind##3 make_##kind##3(kind##2 a, scalar z) { return make_##kind##3(a.x, a.y, z); } \
    GPUPROF_INLINE kind##3 make_##kind##3(kind##4 a) { return make_##kind##3(a.x, a.y, a.z); } \
    GPUPROF_INLINE kind##4 make_##kind##4(kind##3 a) { return make_##kind##4(a.x, a.y, a.z, 0); } \
    GPUPROF_INLINE kind##4 make_##kind##4(kind##3 a, scalar w) { return make_##kind##4(a.x, a.y, a.z, w); }
GPUPROF_FLOATS(float2, 2)
GPUPROF_FLOATS(float3, 3)
GPUPROF_FLOATS(float4, 4)
GPUPROF_LONGER(float, float)
GPUPROF_VECTOR(int2, int, 2)
GPUPROF_VECTOR(int3, int, 3)
GPUPROF_VECTOR(int4, int, 4)
GPUPROF_LONGER(int, int)
GPUPROF_VECTOR(uint2, unsigned, 2)
GPUPROF_VECTOR(uint3, unsigned, 3)
GPUPROF_VECTOR(uint4, unsigned, 4)
GPUPROF_LONGER(uint, unsigned)
GPUPROF_INLINE float lerp(float a, float b, float t) { return a + t * (b - a); }
GPUPROF_INLINE float clamp(float f, float a, float b) { return fmaxf(a, fminf(f, b)); }
GPUPROF_INLINE int clamp(int f, int a, int b) { return max(a, min(f, b)); }
GPUPROF_INLINE float3 cross(float3 a, float3 b)
{
    return make_float3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
GPUPROF_INLINE float3 reflect(float3 i, float3 n) { return i - 2.0f * n * dot(n, i); }
