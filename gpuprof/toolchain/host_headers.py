# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Headers of the host that kernel files include: empty for the device, or the little that makes sense there.

NVRTC knows none of them. Whatever they declare for the host is left out of the compilation anyway, and what
device code may use of them (`FLT_MAX`, `std::max`, `int32_t`) is given here, in types that agree with those
of CUDA's own library.
"""

from collections.abc import Iterable

#: The runtime and its libraries, of which device code needs nothing that NVRTC does not know by itself.
_OF_CUDA = (
    *("cuda_runtime.h", "cuda_runtime_api.h", "cuda.h", "device_launch_parameters.h"),
    *("device_functions.h", "vector_types.h", "vector_functions.h", "device_types.h"),
    *("driver_types.h", "builtin_types.h", "cuda_profiler_api.h", "cudaProfiler.h", "nvToolsExt.h"),
    *("nvtx3/nvToolsExt.h", "nvtx3/nvtx3.hpp", "cublas.h", "cublas_v2.h", "cublasLt.h", "cufft.h"),
    *("curand.h", "cusparse.h", "cusolverDn.h", "nvml.h", "helper_cuda.h", "helper_functions.h"),
    *("helper_string.h", "helper_timer.h", "nvrtc.h", "thrust/host_vector.h"),
    *("thrust/device_vector.h", "thrust/sort.h", "thrust/reduce.h"),
)
#: Of the C library.
_OF_C = (
    *("assert.h", "ctype.h", "errno.h", "inttypes.h", "locale.h", "memory.h", "setjmp.h", "signal.h"),
    *("stdarg.h", "stdbool.h", "stdio.h", "stdlib.h", "string.h", "strings.h", "time.h", "wchar.h"),
    *("sys/time.h", "sys/types.h", "sys/stat.h", "unistd.h", "pthread.h", "omp.h", "getopt.h"),
    *("malloc.h", "cassert", "cctype", "cerrno", "cinttypes", "clocale", "csetjmp", "csignal"),
    *("cstdarg", "cstdio", "cstdlib", "cstring", "ctime", "cwchar"),
)
#: Of the C++ library: what none but the host can use.
_OF_CPP = (
    *("any", "chrono", "codecvt", "condition_variable", "deque", "exception", "execution"),
    *("filesystem", "format", "forward_list", "fstream", "future", "iomanip", "ios", "iosfwd"),
    *("iostream", "istream", "list", "locale", "map", "memory", "mutex", "new", "numeric", "ostream"),
    *("queue", "random", "regex", "set", "shared_mutex", "sstream", "stack", "stdexcept", "streambuf"),
    *("string", "string_view", "strstream", "system_error", "thread", "typeindex", "typeinfo"),
    *("unordered_map", "unordered_set", "valarray", "vector"),
)
#: Of the C++ library: what CUDA's own library has for the device too.
_IN_CUDA_STD = (
    *("array", "atomic", "bit", "bitset", "complex", "concepts", "functional", "initializer_list"),
    *("iterator", "limits", "optional", "ratio", "span", "tuple", "type_traits", "utility", "variant"),
)

#: Defined where device code uses the namespace `std`: CUDA's headers for it take seconds to read.
USES_STD = "GPUPROF_DEVICE_CODE_USES_STD"

_INTEGERS = "".join(
    f"using int{bits}_t = signed {kind};\nusing uint{bits}_t = unsigned {kind};\n"
    f"using int_fast{bits}_t = int{bits}_t;\nusing uint_fast{bits}_t = uint{bits}_t;\n"
    f"using int_least{bits}_t = int{bits}_t;\nusing uint_least{bits}_t = uint{bits}_t;\n"
    for bits, kind in ((8, "char"), (16, "short"), (32, "int"), (64, "long long"))
) + (
    "using intptr_t = int64_t;\nusing uintptr_t = uint64_t;\n"
    "using intmax_t = int64_t;\nusing uintmax_t = uint64_t;\n"
)
_INTEGER_NAMES = tuple(
    f"{sign}int{kind}_t"
    for sign in ("", "u")
    for kind in (
        *(f"{form}{bits}" for form in ("", "_fast", "_least") for bits in (8, 16, 32, 64)),
        "ptr",
        "max",
    )
)
_FUNCTIONS = (
    *("abs", "fabs", "fma", "fmax", "fmin", "fmod", "remainder", "copysign", "sqrt", "cbrt", "hypot"),
    *("pow", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin"),
    *("acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc"),
    *("tgamma", "lgamma", "ceil", "floor", "trunc", "round", "lround", "llround", "rint", "lrint"),
    *("nearbyint", "ldexp", "frexp", "modf", "logb", "ilogb", "scalbn", "nextafter", "fdim", "isnan"),
    *("isinf", "isfinite", "signbit"),
)


def _macros(**values: str) -> str:
    return "".join(f"#ifndef {name}\n#define {name} {value}\n#endif\n" for name, value in values.items())


def _in_std(names: Iterable[str]) -> str:
    return "namespace std {\n" + "".join(f"using ::{name};\n" for name in names) + "}\n"


_INTEGER_LIMITS = _macros(
    CHAR_BIT="8",
    SCHAR_MIN="(-128)",
    SCHAR_MAX="127",
    UCHAR_MAX="255",
    CHAR_MIN="(-128)",
    CHAR_MAX="127",
    SHRT_MIN="(-32768)",
    SHRT_MAX="32767",
    USHRT_MAX="65535",
    INT_MIN="(-2147483647 - 1)",
    INT_MAX="2147483647",
    UINT_MAX="4294967295U",
    LONG_MIN="(-9223372036854775807L - 1)",
    LONG_MAX="9223372036854775807L",
    ULONG_MAX="18446744073709551615UL",
    LLONG_MIN="(-9223372036854775807LL - 1)",
    LLONG_MAX="9223372036854775807LL",
    ULLONG_MAX="18446744073709551615ULL",
)
_SIZED_LIMITS = _macros(
    **{
        f"INT{bits}_MIN": f"{name}_MIN"
        for bits, name in ((8, "SCHAR"), (16, "SHRT"), (32, "INT"), (64, "LLONG"))
    },
    **{
        f"INT{bits}_MAX": f"{name}_MAX"
        for bits, name in ((8, "SCHAR"), (16, "SHRT"), (32, "INT"), (64, "LLONG"))
    },
    **{
        f"UINT{bits}_MAX": f"U{name}_MAX"
        for bits, name in ((8, "CHAR"), (16, "SHRT"), (32, "INT"), (64, "LLONG"))
    },
    SIZE_MAX="ULLONG_MAX",
)
_FLOATS = _macros(
    FLT_RADIX="2",
    FLT_DIG="6",
    FLT_MANT_DIG="24",
    FLT_EPSILON="1.1920928955078125e-07f",
    FLT_MIN="1.17549435082228750797e-38f",
    FLT_MAX="3.40282346638528859812e+38f",
    FLT_MIN_EXP="(-125)",
    FLT_MAX_EXP="128",
    DBL_DIG="15",
    DBL_MANT_DIG="53",
    DBL_EPSILON="2.2204460492503130808e-16",
    DBL_MIN="2.2250738585072013831e-308",
    DBL_MAX="1.7976931348623157081e+308",
    DBL_MIN_EXP="(-1021)",
    DBL_MAX_EXP="1024",
)
_CONSTANTS = _macros(
    INFINITY="(__int_as_float(0x7f800000))",
    HUGE_VALF="(__int_as_float(0x7f800000))",
    HUGE_VAL="(__longlong_as_double(0x7ff0000000000000LL))",
    NAN="(__int_as_float(0x7fc00000))",
    M_E="2.7182818284590452354",
    M_LOG2E="1.4426950408889634074",
    M_LOG10E="0.43429448190325182765",
    M_LN2="0.69314718055994530942",
    M_LN10="2.30258509299404568402",
    M_PI="3.14159265358979323846",
    M_PI_2="1.57079632679489661923",
    M_PI_4="0.78539816339744830962",
    M_1_PI="0.31830988618379067154",
    M_2_PI="0.63661977236758134308",
    M_2_SQRTPI="1.12837916709551257390",
    M_SQRT2="1.41421356237309504880",
    M_SQRT1_2="0.70710678118654752440",
)
_ALGORITHM = """namespace std {
template <class T> __host__ __device__ constexpr const T &max(const T &a, const T &b)
{
    return a < b ? b : a;
}
template <class T> __host__ __device__ constexpr const T &min(const T &a, const T &b)
{
    return b < a ? b : a;
}
template <class T> __host__ __device__ constexpr const T &clamp(const T &x, const T &low, const T &high)
{
    return x < low ? low : high < x ? high : x;
}
}
"""


def _forwarded(name: str) -> str:
    """CUDA's own header in the place of the host's, where it is found and device code speaks of `std::`."""
    return (
        f"#if defined({USES_STD}) && __has_include(<cuda/std/{name}>)\n#include <cuda/std/{name}>\n"
        "namespace std {\nusing namespace cuda::std;\n}\n#endif\n"
    )


def _all() -> dict[str, str]:
    texts = dict.fromkeys((*_OF_CUDA, *_OF_C, *_OF_CPP), "")
    texts |= {name: _forwarded(name) for name in _IN_CUDA_STD}
    texts["stddef.h"] = "using nullptr_t = decltype(nullptr);\n"
    texts["cstddef"] = '#include "stddef.h"\n' + _in_std(("size_t", "ptrdiff_t", "nullptr_t"))
    texts["stdint.h"] = f'#include "limits.h"\n{_INTEGERS}{_SIZED_LIMITS}'
    texts["cstdint"] = '#include "stdint.h"\n' + _in_std(_INTEGER_NAMES)
    texts["limits.h"] = texts["climits"] = _INTEGER_LIMITS
    texts["float.h"] = texts["cfloat"] = _FLOATS
    texts["math.h"] = _CONSTANTS
    texts["cmath"] = '#include "math.h"\n' + _in_std(_FUNCTIONS)
    texts["algorithm"] = _ALGORITHM
    return {name: f"#pragma once\n{text}" for name, text in texts.items()}


#: Every such header, by the name that includes it.
HOST_HEADERS = _all()

#: What nvcc gives every file, by including its own runtime before it.
GIVEN_BY_NVCC = "gpuprof_given_by_nvcc.h"
GIVEN = {
    GIVEN_BY_NVCC: (
        '#pragma once\n#include "limits.h"\n#include "math.h"\n'
        "using uint = unsigned;\nusing ushort = unsigned short;\n"
    )
}
#: Names of it that NVRTC does not know: a source that uses none of them needs nothing given.
GIVEN_NAMES = frozenset(
    ("uint", "ushort", *(line.split()[1] for line in (_CONSTANTS + _INTEGER_LIMITS).splitlines()[::3]))
)
