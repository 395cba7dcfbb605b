// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifndef FLT_RADIX
#define FLT_RADIX 2
#endif
#ifndef FLT_DIG
#define FLT_DIG 6
#endif
#ifndef FLT_MANT_DIG
#define FLT_MANT_DIG 24
#endif
#ifndef FLT_EPSILON
#define FLT_EPSILON 1.1920928955078125e-07f
#endif
#ifndef FLT_MIN
#define FLT_MIN 1.17549435082228750797e-38f
#endif
#ifndef FLT_MAX
#define FLT_MAX 3.40282346638528859812e+38f
#endif
#ifndef FLT_MIN_EXP
#define FLT_MIN_EXP (-125)
#endif
#ifndef FLT_MAX_EXP
#define FLT_MAX_EXP 128
#endif
#ifndef DBL_DIG
#define DBL_DIG 15
#endif
#ifndef DBL_MANT_DIG
#define DBL_MANT_DIG 53
#endif
#ifndef DBL_EPSILON
#define DBL_EPSILON 2.2204460492503130808e-16
#endif
#ifndef DBL_MIN
#define DBL_MIN 2.2250738585072013831e-308
#endif
#ifndef DBL_MAX
#define DBL_MAX 1.7976931348623157081e+308
#endif
#ifndef DBL_MIN_EXP
#define DBL_MIN_EXP (-1021)
#endif
#ifndef DBL_MAX_EXP
#define DBL_MAX_EXP 1024
#endif
#ifndef __FLT_MAX__
#define __FLT_MAX__ FLT_MAX
#endif
#ifndef __FLT_MIN__
#define __FLT_MIN__ FLT_MIN
#endif
#ifndef __FLT_EPSILON__
#define __FLT_EPSILON__ FLT_EPSILON
#endif
#ifndef __DBL_MAX__
#define __DBL_MAX__ DBL_MAX
#endif
#ifndef __DBL_MIN__
#define __DBL_MIN__ DBL_MIN
#endif
#ifndef __DBL_EPSILON__
#define __DBL_EPSILON__ DBL_EPSILON
#endif
