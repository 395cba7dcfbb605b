// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "limits.h"
using int8_t = signed char;
using uint8_t = unsigned char;
using int_fast8_t = int8_t;
using uint_fast8_t = uint8_t;
using int_least8_t = int8_t;
using uint_least8_t = uint8_t;
using int16_t = signed short;
using uint16_t = unsigned short;
using int_fast16_t = int16_t;
using uint_fast16_t = uint16_t;
using int_least16_t = int16_t;
using uint_least16_t = uint16_t;
using int32_t = signed int;
using uint32_t = unsigned int;
using int_fast32_t = int32_t;
using uint_fast32_t = uint32_t;
using int_least32_t = int32_t;
using uint_least32_t = uint32_t;
using int64_t = signed long long;
using uint64_t = unsigned long long;
using int_fast64_t = int64_t;
using uint_fast64_t = uint64_t;
using int_least64_t = int64_t;
using uint_least64_t = uint64_t;
using intptr_t = int64_t;
using uintptr_t = uint64_t;
using intmax_t = int64_t;
using uintmax_t = uint64_t;
#ifndef INT8_MIN
#define INT8_MIN SCHAR_MIN
#endif
#ifndef INT16_MIN
#define INT16_MIN SHRT_MIN
#endif
#ifndef INT32_MIN
#define INT32_MIN INT_MIN
#endif
#ifndef INT64_MIN
#define INT64_MIN LLONG_MIN
#endif
#ifndef INT8_MAX
#define INT8_MAX SCHAR_MAX
#endif
#ifndef INT16_MAX
#define INT16_MAX SHRT_MAX
#endif
#ifndef INT32_MAX
#define INT32_MAX INT_MAX
#endif
#ifndef INT64_MAX
#define INT64_MAX LLONG_MAX
#endif
#ifndef UINT8_MAX
#define UINT8_MAX UCHAR_MAX
#endif
#ifndef UINT16_MAX
#define UINT16_MAX USHRT_MAX
#endif
#ifndef UINT32_MAX
#define UINT32_MAX UINT_MAX
#endif
#ifndef UINT64_MAX
#define UINT64_MAX ULLONG_MAX
#endif
#ifndef SIZE_MAX
#define SIZE_MAX ULLONG_MAX
#endif
#ifndef INT8_C
#define INT8_C(value) value
#endif
#ifndef UINT8_C
#define UINT8_C(value) value
#endif
#ifndef INT16_C
#define INT16_C(value) value
#endif
#ifndef UINT16_C
#define UINT16_C(value) value
#endif
#ifndef INT32_C
#define INT32_C(value) value
#endif
#ifndef UINT32_C
#define UINT32_C(value) value##U
#endif
#ifndef INT64_C
#define INT64_C(value) value##LL
#endif
#ifndef UINT64_C
#define UINT64_C(value) value##ULL
#endif
