# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Headers of the host that kernel files include: empty for the device, or the little that makes sense there.

NVRTC knows none of them. Whatever they declare for the host is left out of the compilation anyway, and what
device code may use of them (`FLT_MAX`, `std::max`, `int32_t`) is given here, in types that agree with those
of CUDA's own library. What is found nowhere is taken for one of these too, and is empty.
"""

import re
from collections.abc import Collection, Iterable

#: The runtime and its libraries, of which device code needs nothing that NVRTC does not know by itself.
_OF_CUDA = (
    *("cuda_runtime.h", "cuda_runtime_api.h", "cuda.h", "device_launch_parameters.h"),
    *("device_functions.h", "vector_types.h", "vector_functions.h", "device_types.h"),
    *("driver_types.h", "builtin_types.h", "cuda_profiler_api.h", "cudaProfiler.h", "nvToolsExt.h"),
    *("nvtx3/nvToolsExt.h", "nvtx3/nvtx3.hpp", "cublas.h", "cublas_v2.h", "cublasLt.h", "cufft.h"),
    *("curand.h", "cusparse.h", "cusolverDn.h", "cufftXt.h", "cudnn.h", "nccl.h", "nvml.h", "nvrtc.h"),
    *("helper_cuda.h", "helper_cuda_drvapi.h", "helper_functions.h", "helper_string.h", "helper_timer.h"),
    *("helper_image.h", "helper_gl.h", "cuda_gl_interop.h", "nvToolsExtCuda.h", "nvToolsExtCudaRt.h"),
)
#: Of the C library.
_OF_C = (
    *("assert.h", "ctype.h", "errno.h", "inttypes.h", "locale.h", "memory.h", "setjmp.h", "signal.h"),
    *("stdarg.h", "stdbool.h", "stdio.h", "stdlib.h", "string.h", "strings.h", "time.h", "wchar.h"),
    *("unistd.h", "pthread.h", "omp.h", "mpi.h", "getopt.h", "fcntl.h", "dirent.h", "libgen.h", "dlfcn.h"),
    *("execinfo.h", "sched.h", "termios.h", "wait.h", "netdb.h", "windows.h", "Python.h", "malloc.h"),
    *("cassert", "cctype", "cerrno", "cinttypes", "clocale", "csetjmp", "csignal"),
    *("cstdarg", "cstdio", "cstdlib", "cstring", "ctime", "cwchar"),
)
#: Of the C++ library: what none but the host can use.
_OF_CPP = (
    *("any", "chrono", "codecvt", "condition_variable", "deque", "exception", "execution"),
    *("filesystem", "format", "forward_list", "fstream", "future", "iomanip", "ios", "iosfwd"),
    *("iostream", "istream", "list", "locale", "map", "memory", "mutex", "new", "numeric", "ostream"),
    *("queue", "random", "regex", "set", "shared_mutex", "sstream", "stack", "stdexcept", "streambuf"),
    *("string", "string_view", "strstream", "system_error", "thread", "typeindex", "typeinfo"),
    *("unordered_map", "unordered_set", "valarray", "vector", "bits/stdc++.h"),
)
#: Of the C++ library: what CUDA's own library has for the device too.
_IN_CUDA_STD = (
    *("array", "atomic", "bit", "bitset", "complex", "concepts", "functional", "initializer_list"),
    *("iterator", "limits", "optional", "ratio", "span", "tuple", "type_traits", "utility", "variant"),
)

#: Libraries for the host among CUDA's own, and what of those is for the device too.
_OF_LIBRARIES = ("nvtx3/", "thrust/")
_FOR_KERNELS = re.compile(r"thrust/(?:detail/|(?:complex|functional|pair|tuple|swap)\.h\Z)")
#: A namespace that is used as a whole, and those that CUDA's headers define.
_USED = re.compile(r"\busing\s+namespace\s+(?:::\s*)?(\w+(?:\s*::\s*\w+)*)\s*;")
_OF_DEVICE = ("std", "cuda", "nvcuda", "cooperative_groups", "cub", "thrust", "cute", "cutlass")
#: Functions of the runtime that kernels call, and which instruction each is.
_LAUNCH_DEPENDENCES = {
    "cudaGridDependencySynchronize": "wait",
    "cudaTriggerProgrammaticLaunchCompletion": "launch_dependents",
}
#: Of tensors: the headers and, for kernels, the marks and element types that they bring.
_OF_TENSORS = ("torch/", "ATen/", "c10/")
_TENSORS = "gpuprof_of_tensors.h"
#: Headers that bring CUDA's halves along, and the names by which a source uses them.
_BRING_HALVES = ("cublas", "cusparse", "cudnn", "nccl", *_OF_TENSORS)
_HALVES = {
    "cuda_fp16.h": re.compile(r"__half2?|half2?|Half|__(?:half|float|hadd|hmul|hfma|low|high)\w*half\w*"),
    "cuda_bf16.h": re.compile(r"(?:__)?nv_bfloat16\w*|BFloat16|__\w*bfloat16\w*"),
}
#: Which header of `cuda/std` has what people use of `std` with whatever header brought it on the host.
_OWNERS = {
    "limits": "numeric_limits float_round_style",
    "utility": "pair make_pair move forward swap exchange declval integer_sequence index_sequence"
    " make_integer_sequence make_index_sequence",
    "tuple": "tuple make_tuple get tie tuple_size tuple_element",
    "array": "array",
    "iterator": "iterator_traits distance advance next prev begin end",
    "complex": "complex",
    "functional": "plus minus multiplies divides less greater less_equal greater_equal equal_to negate",
    "initializer_list": "initializer_list",
    "optional": "optional nullopt",
    "bitset": "bitset",
    "cstddef": "size_t ptrdiff_t nullptr_t byte",
    "algorithm": "max min clamp",
}
_OWNER_OF = {name: header for header, names in _OWNERS.items() for name in names.split()}
_TYPE_TRAIT = re.compile(
    r"(?:is|enable|remove|add|make|has|alignment|aligned|common|underlying|invoke|result)_\w+|decay\w*|conditional\w*"
    r"|integral_constant|bool_constant|(?:true|false)_type|void_t|conjunction\w*|disjunction\w*|negation\w*|rank\w*|extent\w*"
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


def _vectors() -> str:
    """Arithmetic of CUDA's vectors, as NVIDIA's samples have it for kernels."""
    mark = "__host__ __device__ inline"
    lines = []
    for kind in ("float", "int", "uint"):
        scalar = "unsigned" if kind == "uint" else kind
        for count in (2, 3, 4):
            of, parts = f"{kind}{count}", "xyzw"[:count]
            products = " + ".join(f"a.{part} * b.{part}" for part in parts)

            def each(text: str, of: str = of, parts: str = parts) -> str:
                return f"return make_{of}({', '.join(text.replace('$', part) for part in parts)});"

            for sign in "+-*/":
                lines += [
                    f"{mark} {of} operator{sign}({of} a, {of} b) {{ {each(f'a.$ {sign} b.$')} }}",
                    f"{mark} {of} operator{sign}({of} a, {scalar} b) {{ {each(f'a.$ {sign} b')} }}",
                    f"{mark} {of} operator{sign}({scalar} a, {of} b) {{ {each(f'a {sign} b.$')} }}",
                    f"{mark} void operator{sign}=({of} &a, {of} b) {{ a = a {sign} b; }}",
                    f"{mark} void operator{sign}=({of} &a, {scalar} b) {{ a = a {sign} b; }}",
                ]
            lines += [
                f"{mark} {of} operator-({of} a) {{ {each('-a.$')} }}",
                f"{mark} {of} make_{of}({scalar} s) {{ {each('s')} }}",
                f"{mark} {of} min({of} a, {of} b) {{ {each('a.$ < b.$ ? a.$ : b.$')} }}",
                f"{mark} {of} max({of} a, {of} b) {{ {each('a.$ < b.$ ? b.$ : a.$')} }}",
                f"{mark} {of} clamp({of} v, {of} a, {of} b) {{ return max(a, min(v, b)); }}",
                f"{mark} {of} clamp({of} v, {scalar} a, {scalar} b)"
                f" {{ return clamp(v, make_{of}(a), make_{of}(b)); }}",
                f"{mark} {scalar} dot({of} a, {of} b) {{ return {products}; }}",
            ]
            if kind == "float":
                lines += [
                    f"{mark} float length({of} v) {{ return sqrtf(dot(v, v)); }}",
                    f"{mark} {of} normalize({of} v) {{ return v * rsqrtf(dot(v, v)); }}",
                    f"{mark} {of} lerp({of} a, {of} b, float t) {{ return a + t * (b - a); }}",
                    f"{mark} {of} floorf({of} v) {{ {each('floorf(v.$)')} }}",
                    f"{mark} {of} fabs({of} v) {{ {each('fabsf(v.$)')} }}",
                ]
        lines += [
            f"{mark} {kind}3 make_{kind}3({kind}2 a, {scalar} z) {{ return make_{kind}3(a.x, a.y, z); }}",
            f"{mark} {kind}3 make_{kind}3({kind}4 a) {{ return make_{kind}3(a.x, a.y, a.z); }}",
            f"{mark} {kind}4 make_{kind}4({kind}3 a) {{ return make_{kind}4(a.x, a.y, a.z, 0); }}",
            f"{mark} {kind}4 make_{kind}4({kind}3 a, {scalar} w)",
            f"{{ return make_{kind}4(a.x, a.y, a.z, w); }}",
        ]
    lines += [
        f"{mark} float lerp(float a, float b, float t) {{ return a + t * (b - a); }}",
        f"{mark} float clamp(float f, float a, float b) {{ return fmaxf(a, fminf(f, b)); }}",
        f"{mark} int clamp(int f, int a, int b) {{ return max(a, min(f, b)); }}",
        f"{mark} float3 cross(float3 a, float3 b)"
        " { return make_float3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x); }",
        f"{mark} float3 reflect(float3 i, float3 n) {{ return i - 2.0f * n * dot(n, i); }}",
    ]
    return "using uint = unsigned;\n" + "\n".join(lines) + "\n"


_VECTORS = _vectors()


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
    texts["cuda.h"] = (
        "using CUtexObject = unsigned long long;\nusing CUsurfObject = unsigned long long;\n"
        "using CUdeviceptr = unsigned long long;\n"
    )
    texts["cufft.h"] = (
        "using cufftReal = float;\nusing cufftDoubleReal = double;\n"
        "using cufftComplex = float2;\nusing cufftDoubleComplex = double2;\n"
    )
    texts["cufftXt.h"] = '#include "cufft.h"\n'
    texts["helper_math.h"] = _VECTORS
    texts["bits/stdc++.h"] = "".join(
        f'#include "{name}"\n' for name in ("cstddef", "cstdint", "climits", "cfloat", "cmath", "algorithm")
    )
    return {name: f"#pragma once\n{text}" for name, text in texts.items()}


#: Every such header, by the name that includes it.
HOST_HEADERS = _all()

#: What nvcc gives every file, by including its own runtime before it.
GIVEN_BY_NVCC = "gpuprof_given_by_nvcc.h"
_GIVEN = (
    '#include "limits.h"\n#include "math.h"\n'
    "using uint = unsigned;\nusing ushort = unsigned short;\nusing ulong = unsigned long;\n"
)
#: Names of it that NVRTC does not know.
GIVEN_NAMES = frozenset(
    (
        "uint",
        "ushort",
        "ulong",
        *(line.split()[1] for line in (_CONSTANTS + _INTEGER_LIMITS).splitlines()[::3]),
    )
)


def stand_ins(names: Collection[str], code: str) -> dict[str, str]:
    """Headers for a program, by name, besides `HOST_HEADERS`.

    One that is called `GIVEN_BY_NVCC` is to be included before the source: what device code uses though it
    names no header of it, because on the host others bring it along.

    Args:
        code: Its device code, masked.
    """
    words = set(re.findall(r"\w+", code))
    tensors = [name for name in names if name.startswith(_OF_TENSORS)]
    made = {
        name: "#pragma once\n"
        for name in names
        if name.startswith(_OF_LIBRARIES) and not _FOR_KERNELS.match(name) and name not in HOST_HEADERS
    }
    halves = [header for header, pattern in _HALVES.items() if any(map(pattern.fullmatch, words))]
    bring_halves = halves if any(name.startswith(_BRING_HALVES) for name in names) else []
    if tensors:
        made |= dict.fromkeys(tensors, f'#pragma once\n#include "{_TENSORS}"\n')
        made[_TENSORS] = _of_tensors(halves)
    if "cub/cub.cuh" in names:
        made["cub/cub.cuh"] = "#pragma once\n" + "".join(sorted(_of_cub(words)))
    given = [_GIVEN] if GIVEN_NAMES & words else []
    used = {name for name in words.intersection(_INTEGER_NAMES) if not _declares(name, code)}
    given += ['#include "stdint.h"\n'] if used else []
    given += [f"#include <{header}>\n" for header in bring_halves]
    given += _namespaces(code)
    given += ["#define __extension__\n"] if "__extension__" in words else []
    given += [
        f"__device__ inline void {name}()\n{{\n#if __CUDA_ARCH__ >= 900\n"
        f'asm volatile("griddepcontrol.{what};" ::: "memory");\n#endif\n}}\n'
        for name, what in _LAUNCH_DEPENDENCES.items()
        if name in words
    ]
    if names:
        given += [f'#include "{header}"\n' for header in sorted(_owners(code))]
    return made | ({GIVEN_BY_NVCC: "".join(("#pragma once\n", *given))} if given else {})


def _namespaces(code: str) -> list[str]:
    """Namespaces that are used and defined nowhere: those of headers of the host."""
    used = set(_USED.findall(code))
    known = {*_OF_DEVICE, *re.findall(r"\bnamespace\s+(\w+)", _USED.sub("", code))}
    return [f"namespace {name} {{}}\n" for name in sorted(used) if re.split(r"\W", name)[0] not in known]


def _owners(code: str) -> set[str]:
    """Headers of the C++ library that own what device code uses of `std`."""
    found = set()
    for name in set(re.findall(r"\bstd\s*::\s*(\w+)", code)):
        owner = _OWNER_OF.get(name) or ("cmath" if name in _FUNCTIONS else "")
        owner = owner or ("cstdint" if name in _INTEGER_NAMES else "")
        found.add(owner or ("type_traits" if _TYPE_TRAIT.fullmatch(name) else ""))
    return found - {""}


def _declares(name: str, code: str) -> bool:
    return re.search(rf"\btypedef\b[^;]*\b{name}\s*;|\busing\s+{name}\s*=", code) is not None


def _of_cub(words: Iterable[str]) -> Iterable[str]:
    """What of CUB device code uses: the whole of it is not for NVRTC."""
    for word in words:
        if match := re.fullmatch(r"(Block|Warp)([A-Z]\w*?)(?:Algorithm)?", word):
            snake = re.sub(r"(?<!^)(?=[A-Z])", "_", word.removesuffix("Algorithm")).lower()
            header = f"cub/{match[1].lower()}/{snake}.cuh"
            yield f"#if __has_include(<{header}>)\n#include <{header}>\n#endif\n"


def _of_tensors(halves: Iterable[str]) -> str:
    includes = "".join(f"#include <{header}>\n" for header in halves)
    types = {"cuda_fp16.h": "using Half = ::__half;\n", "cuda_bf16.h": "using BFloat16 = ::__nv_bfloat16;\n"}
    named = "".join(types[header] for header in halves)
    marks = _macros(
        C10_HOST_DEVICE="__host__ __device__",
        C10_DEVICE="__device__",
        C10_HOST="__host__",
        C10_WARP_SIZE="32",
    )
    bounds = (
        "#define C10_LAUNCH_BOUNDS_0\n#define C10_LAUNCH_BOUNDS_1(threads) __launch_bounds__(threads)\n"
        "#define C10_LAUNCH_BOUNDS_2(threads, blocks) __launch_bounds__(threads, blocks)\n"
        "#define CUDA_KERNEL_LOOP(i, n) \\\n"
        "    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < (n); \\\n"
        "         i += (long long)blockDim.x * gridDim.x)\n"
        "#define CUDA_KERNEL_ASSERT(condition) assert(condition)\n"
    )
    spaces = "".join(f"namespace {name} {{\n{named}}}\n" for name in ("c10", "at"))
    return f"#pragma once\n{includes}{marks}{bounds}{spaces}"
