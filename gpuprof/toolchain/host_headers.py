# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Headers of the host that kernel files include: empty for the device, or the little that makes sense there.

NVRTC knows none of them. Whatever they declare for the host is left out of the compilation anyway, and what
device code may use of them (`FLT_MAX`, `std::max`, `int32_t`) is given here, in types that agree with those
of CUDA's own library. What is found nowhere is taken for one of these too, and is empty.
"""

import re
from collections.abc import Collection, Iterable
from functools import cache
from importlib.resources import files

from gpuprof.cuda_source.masking import conditions_at

#: The runtime and its libraries, of which device code needs nothing that NVRTC does not know by itself.
_OF_CUDA = (
    *("cuda_runtime.h", "cuda_runtime_api.h", "cuda.h", "device_launch_parameters.h"),
    *("device_functions.h", "vector_types.h", "vector_functions.h", "device_types.h"),
    *("driver_types.h", "builtin_types.h", "cuda_profiler_api.h", "cudaProfiler.h", "nvToolsExt.h"),
    *("nvtx3/nvToolsExt.h", "nvtx3/nvtx3.hpp", "cublas.h", "cublas_v2.h", "cublasLt.h", "cufft.h"),
    *("curand.h", "cusparse.h", "cusolverDn.h", "cufftXt.h", "cudnn.h", "nccl.h", "nvml.h", "nvrtc.h"),
    *("helper_cuda.h", "helper_cuda_drvapi.h", "helper_functions.h", "helper_string.h", "helper_timer.h"),
    *("helper_image.h", "helper_gl.h", "cuda_gl_interop.h", "nvToolsExtCuda.h", "nvToolsExtCudaRt.h"),
    "thrust/detail/complex/stream.h",
)
#: Of the C library.
_OF_C = (
    *("assert.h", "ctype.h", "errno.h", "inttypes.h", "locale.h", "memory.h", "setjmp.h", "signal.h"),
    *("stdarg.h", "stdbool.h", "stdio.h", "stdlib.h", "string.h", "strings.h", "time.h", "wchar.h"),
    *("unistd.h", "pthread.h", "omp.h", "mpi.h", "getopt.h", "fcntl.h", "dirent.h", "libgen.h", "dlfcn.h"),
    *("execinfo.h", "sched.h", "termios.h", "wait.h", "netdb.h", "windows.h", "Python.h", "malloc.h"),
    *("cassert", "cctype", "cerrno", "cinttypes", "clocale", "csetjmp", "csignal"),
    *("cstdarg", "cstdio", "cstdlib", "ctime", "cwchar"),
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
    *("array", "atomic", "bit", "bitset", "complex", "concepts", "cstring", "functional"),
    *("initializer_list", "iterator", "limits", "optional", "ratio", "span", "tuple", "type_traits"),
    *("utility", "variant"),
)

#: What is for the host in other folders, and what of CUDA's libraries there is for the device too.
_OF_LIBRARIES = ("cupti", "nvtx3/", "thrust/", "sys/", "cub/device/", "cub/util_allocator")
_FOR_KERNELS = re.compile(
    r"thrust/(?:(?:detail|iterator|type_traits)/|(?:complex|functional|pair|tuple|swap|version)\.h\Z)"
)
#: Words of GCC that NVRTC does not know, and what they mean.
_WORDS_OF_GCC = {"__extension__": "", "__asm__": "asm"}
#: Functions of the runtime that kernels call, and which instruction each is.
_LAUNCH_DEPENDENCES = {
    "cudaGridDependencySynchronize": "wait",
    "cudaTriggerProgrammaticLaunchCompletion": "launch_dependents",
}
#: Of tensors: the headers and, for kernels, the marks and element types that they bring.
_OF_TENSORS = ("torch/", "ATen/", "c10/")
_TENSORS, _MARKS = "gpuprof_of_tensors.h", "tensor_marks.h"
#: Where a source takes its halves apart, they are types of their own, not other names of CUDA's.
HALVES_APART = "GPUPROF_HALVES_APART"
#: Those that kernels include for their functions: a file that does not may have its own of these names.
_FUNCTIONS_OF_TENSORS = re.compile(r"ATen/(?:cuda/(?:DeviceUtils|Atomic)\.cuh|ceil_div\.h)")
#: Of OpenCV: its short names of integers, and how kernels are given images.
_OF_IMAGES = ("opencv2/", "opencv/")
#: What CUB had for the host's reductions too, and what stands for it since.
_OF_REDUCTIONS = {
    "Equality": "::cuda::std::equal_to<>",
    "Inequality": "::cuda::std::not_equal_to<>",
    "Max": "::cuda::maximum<>",
    "Min": "::cuda::minimum<>",
    "Sum": "::cuda::std::plus<>",
}
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
    "cstring": "memcpy memset memcmp memmove strlen strcmp",
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

_HOST = files(__package__).joinpath("host")


@cache
def _text(name: str) -> str:
    return _HOST.joinpath(name).read_text(encoding="utf-8")


_INTEGER_NAMES, _FUNCTIONS = (re.findall(r"using ::(\w+);", _text(name)) for name in ("cstdint", "cmath"))


def _forwarded(name: str) -> str:
    """CUDA's own header in the place of the host's, where it is found and device code speaks of `std::`."""
    return (
        f"#if defined({USES_STD}) && __has_include(<cuda/std/{name}>)\n#include <cuda/std/{name}>\n"
        "namespace std {\nusing namespace cuda::std;\n}\n#endif\n"
    )


def _all() -> dict[str, str]:
    texts = dict.fromkeys((*_OF_CUDA, *_OF_C, *_OF_CPP), "")
    texts |= {name: _forwarded(name) for name in _IN_CUDA_STD}
    texts |= {"climits": '#include "limits.h"\n', "cfloat": '#include "float.h"\n'}
    texts["cudaTypedefs.h"] = '#include "cuda.h"\n'
    texts["cufftXt.h"] = '#include "cufft.h"\n'
    texts["bits/stdc++.h"] = "".join(
        f'#include "{name}"\n' for name in ("cstddef", "cstdint", "climits", "cfloat", "cmath", "algorithm")
    )
    found = {name: f"#pragma once\n{text}" for name, text in texts.items()}
    return found | {file.name: _text(file.name) for file in _HOST.iterdir() if file.name != _MARKS}


#: Every such header, by the name that includes it.
HOST_HEADERS = _all()

#: What nvcc gives every file, by including its own runtime before it.
GIVEN_BY_NVCC = "gpuprof_given_by_nvcc.h"
_GIVEN = (
    '#include "limits.h"\n#include "float.h"\n#include "math.h"\n'
    "#define CLOCKS_PER_SEC 1000000\n"
    "using uint = unsigned;\nusing ushort = unsigned short;\nusing ulong = unsigned long;\n"
)
#: Names of it that NVRTC does not know.
GIVEN_NAMES = frozenset(
    name
    for text in ("limits.h", "float.h", "math.h")
    for name in ("CLOCKS_PER_SEC", "uint", "ushort", "ulong", *re.findall(r"#define (\w+)", _text(text)))
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
    images = [name for name in names if name.startswith(_OF_IMAGES)]
    made |= dict.fromkeys(images, '#pragma once\n#include "opencv_types.h"\n')
    if tensors:
        made |= dict.fromkeys(tensors, f'#pragma once\n#include "{_TENSORS}"\n')
        made[_TENSORS] = _of_tensors(halves)
        if any(word.startswith("PackedTensorAccessor") for word in words):
            made[_TENSORS] += '#include "tensor_accessors.h"\n'
        if re.search(r"\bc10\s*::\s*complex\b", code):
            made[_TENSORS] += '#include "tensor_complex.h"\n'
        for name in filter(_FUNCTIONS_OF_TENSORS.fullmatch, tensors):
            made[name] += '#include "tensor_device.h"\n'
        for name in (name for name in tensors if name.startswith("ATen/cuda/detail/")):
            made[name] += '#include "tensor_info.h"\n'
    of_cub = "".join(sorted(_of_cub(code, words)))
    if "cub/cub.cuh" in names:
        made["cub/cub.cuh"] = f"#pragma once\n{of_cub}"
    given = [_GIVEN] if GIVEN_NAMES & words else []
    used = {name for name in words.intersection(_INTEGER_NAMES) if not _declares(name, code)}
    given += ['#include "stdint.h"\n'] if used else []
    given += [f"#include <{header}>\n" for header in bring_halves]
    given += [of_cub] if re.search(r"\bcub\s*::", code) else []
    given += _reductions(code)
    given += [f"#define {word} {meant}\n" for word, meant in _WORDS_OF_GCC.items() if word in words]
    given += [
        f"__device__ inline void {name}()\n{{\n#if __CUDA_ARCH__ >= 900\n"
        f'asm volatile("griddepcontrol.{what};" ::: "memory");\n#endif\n}}\n'
        for name, what in _LAUNCH_DEPENDENCES.items()
        if name in words
    ]
    if names:
        of_std = {*re.findall(r"\bstd\s*::\s*(\w+)", code)}
        given += [f'#include "{header}"\n' for header in sorted({*map(_owner, of_std)} - {""})]
    return made | ({GIVEN_BY_NVCC: "".join(("#pragma once\n", *given))} if given else {})


def _reductions(code: str) -> list[str]:
    """Functors of CUB that its newest versions lack."""
    used = sorted({*re.findall(r"\bcub\s*::\s*(\w+)\b", code)} & _OF_REDUCTIONS.keys())
    made = "".join(f"using {name} = {_OF_REDUCTIONS[name]};\n" for name in used)
    lacks = "#include <cub/version.cuh>\n#if CUB_VERSION >= 300000\n#include <cuda/functional>\n"
    return [f"{lacks}namespace cub {{\n{made}}}\n#endif\n"] if used else []


def _owner(name: str) -> str:
    """The header of the C++ library that owns a name of `std` which device code uses; else nothing."""
    owner = _OWNER_OF.get(name) or ("cmath" if name in _FUNCTIONS else "")
    owner = owner or ("cstdint" if name in _INTEGER_NAMES else "")
    return owner or ("type_traits" if _TYPE_TRAIT.fullmatch(name) else "")


def _declares(name: str, code: str) -> bool:
    found = re.finditer(rf"\btypedef\b[^;]*\b{name}\s*;|\busing\s+{name}\s*=", code)
    return any(not conditions_at(code, match.start()) for match in found)


def _of_cub(code: str, words: Iterable[str]) -> Iterable[str]:
    """What of CUB device code uses: the whole of it is not for NVRTC."""
    uses = re.search(r"\bcub\s*::\s*(?!Device|CachingDevice|DoubleBuffer)\w", code)
    found = {"cub/thread/thread_operators.cuh", "cub/util_ptx.cuh"} if uses else set()
    for word in words:
        named = re.sub(r"\A(Load|Store)Direct\w+", r"Block\1", word)
        named = re.sub(r"\A(?:(?:Static)?(?:Upper|Lower)Bound|MergePathSearch)\Z", "ThreadSearch", named)
        if match := re.fullmatch(r"(Block|Warp|Thread)([A-Z]\w*?)(?:Algorithm)?|[A-Z]\w+putIterator", named):
            room, name = match[1] or "Iterator", (match[1] or "") + (match[2] or named)
            found.add(f"cub/{room.lower()}/{re.sub(r'(?<!^)(?=[A-Z])', '_', name).lower()}.cuh")
    return (f"#if __has_include(<{header}>)\n#include <{header}>\n#endif\n" for header in found)


def _of_tensors(halves: Iterable[str]) -> str:
    includes = "".join(f"#include <{header}>\n" for header in halves)
    types = {"cuda_fp16.h": ("Half", "__half"), "cuda_bf16.h": ("BFloat16", "__nv_bfloat16")}
    named = [types[header] for header in halves]
    same, apart = (
        "".join(f"using {name} = {template.format(native)};\n" for name, native in named)
        for template in ("::{}", "HalfOf<::{}>")
    )
    chosen = f'#ifdef {HALVES_APART}\n#include "tensor_halves.h"\n'
    chosen += f"namespace c10 {{\n{apart}}}\n#else\nnamespace c10 {{\n{same}}}\n#endif\n"
    for name in ("at", "torch::headeronly"):
        chosen += f"namespace {name} {{\nusing namespace c10;\n}}\n"
    return f"{_text(_MARKS)}{includes}{chosen}"
