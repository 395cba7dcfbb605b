# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What people write and include, compiled for the device; what cannot be, named with the fix."""

import importlib.util
import re
from pathlib import Path

import pytest
from compile_support import compile_source

from gpuprof.commands import doctor
from gpuprof.errors import CompileError
from gpuprof.toolchain import cuda_headers, nvrtc
from gpuprof.toolchain.cuda_headers import HEADERS_FIX, find_cuda_headers
from gpuprof.toolchain.fork_server import ForkServer
from gpuprof.toolchain.host_headers import GIVEN_NAMES, HOST_HEADERS
from gpuprof.toolchain.nvrtc import (
    architecture_of,
    compile_entries,
    compiler_options,
    nvrtc_version,
    target_of,
)
from gpuprof.toolchain.nvrtc_program import GROUPS_ALONE, make_program

OPTIONS = compiler_options("sm_80")
#: The dev extra installs them; a toolkit may have them too.
FOUND = find_cuda_headers(nvrtc_version()[0])
KERNEL = "__global__ void k(float *x) { *x = 1; }\n"
TILED = """
template <int BM, int BN, typename T> __global__ void tiled(T *x)
{
    __shared__ T tile[BM * BN];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = tile[BM * BN - 1 - threadIdx.x];
}
"""


def compiled(source, entry="k", options=OPTIONS):
    return compile_source(source, "mine.cu", entry, options)


def refusal(source, entry="k"):
    with pytest.raises(CompileError) as caught:
        compiled(source, entry)
    return caught.value


@pytest.mark.parametrize(
    ("source", "entry", "what", "fix"),
    [
        (TILED, "tiled<8>", "mine.cu defines no kernel tiled<8>: ", 'entry = "tiled<BM, BN, T>"'),
        (TILED, "tiled", "defines no kernel tiled: cannot determine which instance", "tiled<BM, BN, T>"),
        (
            TILED,
            "tiles<8, 8, float>",
            "no kernel tiles<8, 8, float>. Its __global__ functions: tiled",
            "tiled<",
        ),
        (
            "__global__ void k(int *x) {} __global__ void k(float *x) {}",
            "k",
            "mine.cu has several kernels k, the first in line 1.",
            'entry = "k(int *)"',
        ),
        ("namespace a {\n" + KERNEL + "}", "k", "Its __global__ functions: a::k (line 2).", 'entry = "a::k"'),
    ],
)
def test_entry_that_is_none_is_told_what_there_is(source, entry, what, fix):
    error = refusal(source, entry)
    assert what in error.what
    assert fix in error.fix


#: CUDA's own headers of C++ take the compiler seconds.
SLOW = pytest.mark.deep


@pytest.mark.parametrize("backwards", [False, pytest.param(True, marks=SLOW)])
def test_headers_of_the_host_are_harmless_in_any_order(backwards):
    includes = "".join(f"#include <{name}>\n" for name in sorted(HOST_HEADERS, reverse=backwards))
    body = (
        "__global__ void k(std::int32_t *i, uint64_t n, std::size_t m, float x) { assert(x > 0);"
        " *i = std::max(1, 2) + std::min(x, 2.f) + std::sqrt(x) + std::abs(x) + FLT_MAX + DBL_EPSILON"
        " + INT_MAX + UINT64_MAX + UINT64_C(1) + CLOCKS_PER_SEC + M_PI + std::isnan(x) + INFINITY"
        " + std::clamp(n, n, n); }"
    )
    assert "_Z1k" in compiled(includes + body).entry


@pytest.mark.parametrize(
    ("source", "mangled"),
    [
        (
            "#include <bits/stdc++.h>\n"
            "__global__ void k(int64_t *x) { *x = std::max(INT_MAX, std::min({7, 3, 5})); }",
            "_Z1kPx",
        ),
        (
            "#include <c10/util/complex.h>\nusing pair = c10::complex<float>;\n"
            "static_assert((pair(1, 2) * pair(3, 4) / pair(3, 4)).imag_ == 2 && alignof(pair) == 8);\n"
            "__global__ void k(pair *x) { x[0] += -x[1] * 2.0f; }",
            "_Z1kPN3c107complexIfEE",
        ),
        (
            "#include <torch/extension.h>\n__global__ void k(half *x, torch::headeronly::BFloat16 *y) {}",
            "_Z1kP6__halfP13__nv_bfloat16",
        ),
        (
            "#include <ATen/cuda/CUDAContext.h>\nC10_HOST_DEVICE int f() { return 1; }\n"
            "C10_LAUNCH_BOUNDS_1(256) __global__ void k(c10::Half *x)\n"
            "{ CUDA_KERNEL_LOOP(i, f()) x[i] = x[0]; }",
            "_Z1kP6__half",
        ),
        (
            "#include <ATen/AccumulateType.h>\n#include <ATen/cuda/DeviceUtils.cuh>\n"
            "using sum = at::acc_type<at::Half, true>;\n"
            "__global__ void k(sum *x) { gpuAtomicAdd(x, WARP_SHFL_DOWN(*x, at::ceil_div(9, 3))); }",
            "_Z1kPf",
        ),
        (
            "#include <ATen/cuda/detail/TensorInfo.cuh>\nusing namespace at::cuda::detail;\n"
            "__device__ float f(at::Half h)\n"
            "{ h.x ^= 1; return (h += 2) * 0.5f + float(h.operator __half()); }\n"
            "__global__ void k(at::BFloat16 *y, TensorInfo<at::Half, int> x) { if (*y < 1 && *y == y[1])"
            " *y = f(x.data[IndexToOffset<at::Half, int, -1>::get(7, x)]); atomicAdd(y, -__ldg(y)); }",
            "_Z1kPN3c106HalfOfI13__nv_bfloat16EEN2at4cuda6detail10TensorInfoINS0_I6__halfEEiEE",
        ),
        ("#include <cublas_v2.h>\n__global__ void k(__nv_bfloat162 *x) {}", "_Z1kP14__nv_bfloat162"),
        ("#include <cuda_fp16.h>\n__global__ void k(uint32_t *u, ulong n) {}", "_Z1kPjm"),
        ("#include <cstdio>\ntypedef unsigned long uint64_t;\n__global__ void k(uint64_t *u) {}", "_Z1kPm"),
        (
            "#include <vector>\ntemplate <class T>\n"
            "using If = std::enable_if_t<std::is_same<T, int>::value, T>;\n"
            "__global__ void k(If<int> *x) { *x = std::numeric_limits<int>::max(); }",
            "_Z1kPi",
        ),
        (
            "#include <helper_math.h>\n"
            "__global__ void k(float3 *x) { *x = fminf(normalize(2.0f * x[0] - x[1]) / 3, x[2]); }",
            "_Z1kP6float3",
        ),
        (
            "#include <cub/cub.cuh>\n"
            "__global__ void k(int *x) { __shared__ cub::BlockReduce<int, 32>::TempStorage s;"
            " int v[1] = {cub::BlockReduce<int, 32>(s).Sum(*x)};"
            " cub::StoreDirectStriped<32>(threadIdx.x, x, v);"
            " cub::CacheModifiedInputIterator<cub::LOAD_LDG, int> in(x);"
            " cub::KeyValuePair<int, int> one{cub::UpperBound(x, 8, in[3]), cub::BFE(*x, 1, 3)};"
            " *x = cub::Inequality()(one.key, one.value); }",
            "_Z1kPi",
        ),
        pytest.param(
            "#include <thrust/host_vector.h>\n"
            "__global__ void k(int *x) { __shared__ cub::BlockReduce<int, 32>::TempStorage s;"
            " *x = cub::BlockReduce<int, 32>(s).Sum(*x); }",
            "_Z1kPi",
            marks=SLOW,
        ),
        (
            "#include <pthread.h>\n#define ALIGN(x) __attribute__((aligned(x)))\n"
            "#ifdef __INTELLISENSE__\ntypedef unsigned __int32 uint32_t;\n#endif\n"
            "ALIGN(64) typedef struct { uint32_t h[8]; } state_t;\n"
            'extern "C" {\nstruct job {\npthread_t it;\n};\n}\n'
            '__global__ void k(uint32_t *x) { state_t s = {}; __asm__ __volatile__("" : "+r"(s.h[0]));'
            " *x = s.h[0]; }",
            "_Z1kPj",
        ),
        pytest.param(
            "#include <cub/device/device_reduce.cuh>\n#include <thrust/iterator/counting_iterator.h>\n"
            "__global__ void k(int *x) { __shared__ cub::BlockReduce<int, 32>::TempStorage s;"
            " *x = cub::BlockReduce<int, 32>(s).Sum(thrust::counting_iterator<int>(3)[*x]); }",
            "_Z1kPi",
            marks=SLOW,
        ),
        (
            "#include <cstring>\n#include <cupti_result.h>\n"
            "__global__ void k(int *x, float y) { std::memcpy(x, &y, sizeof y); }",
            "_Z1kPif",
        ),
        pytest.param(
            "#include <cuda.h>\n#include <cuda/barrier>\n"
            "__global__ void k(const __grid_constant__ CUtensorMap map) {}",
            "_Z1k14CUtensorMap_st",
            marks=SLOW,
        ),
        (
            "#include <sys/syscall.h>\n#include <thrust/device_ptr.h>\n"
            "#include <nvtx3/other.h>\n__global__ void k() {}",
            "_Z1kv",
        ),
    ],
)
def test_what_headers_of_the_host_bring_along_is_there(source, mangled):
    assert compiled(source).entry == mangled


def test_a_file_of_ones_own_comes_before_a_stand_in():
    text = "#define N 3\n"
    program = make_program(
        '#include "torch/types.h"\n__global__ void k(int *x) { *x = N; }', {"torch/types.h": text}, (), 13
    )
    assert program.headers["torch/types.h"] == text


def test_what_nvcc_gives_without_being_asked_is_there():
    source = (
        "__global__ void k(uint *u, ushort s) { *u = s + (M_PI > 3 && INFINITY > 1) + isnan(NAN) + INT_MAX; }"
    )
    made = compiled(source)
    assert made.entry == "_Z1kPjt"
    assert compiled("__global__ void k(int *u) { *u = (unsigned __int128)*u << 7 >> 9; }").entry == "_Z1kPi"
    assert not GIVEN_NAMES.intersection(KERNEL.split())
    assert not any("pre-include" in option for option in compiled(KERNEL).options)


def test_host_code_beside_the_kernel_is_no_hindrance_and_lines_stay():
    source = (
        "#include <iostream>\n#include <vector>\n"
        "#define CHECK(x) do { cudaError_t e = (x); if (e) exit(1); } while (0)\n"
        'static std::vector<float> host; const std::map<std::string, int> named{{"one", 1}};\n'
        "constexpr int up(int a, int b) { return (a + b - 1) / b; }\n"
        "__global__ void k(int *x) { *x = up(7, 2); }\n"
        "void run(int *x) { k<<<dim3(1), dim3(32)>>>(x); CHECK(cudaGetLastError()); }\n"
        'int main() { int *x; CHECK(cudaMalloc(&x, 4)); run(x); std::cout << "done" << std::endl; }\n'
        "__global__ void broken(int *x) { *x = nothing; }\n"
    )
    assert "mine.cu(9): error" in refusal(source, "broken").what
    assert compiled(source).log.startswith("Left out, as the compiler refuses it: broken.")
    assert compiled(source.replace("nothing", "1"), "broken").registers_per_thread > 0


def test_what_is_refused_is_compiled_once(monkeypatch):
    asked, forks = [], nvrtc._FORKS
    monkeypatch.setattr(forks, "ask", lambda *told: asked.append(told) or ForkServer.ask(forks, *told))
    source = "__device__ void f(int);\n__device__ void f(float);\n__global__ void k() { f(1.0); }\n"
    program = make_program(source, {}, compiler_options("compute_90"), 13)
    for entries in (["k"], ("k",)):
        with pytest.raises(CompileError, match="overloaded function"):
            compile_entries(program, "mine.cu", entries)
        assert len(asked) == 1
        asked.clear()


def test_what_no_kernel_calls_may_be_there_for_its_type():
    """As CuTe asks for members, and aligns types by a macro."""
    compiled(
        "#define ALIGNED(n) alignas(n)\n"
        "template <bool> struct truth {};\n"
        "template <class T> auto has_size(T *) -> truth<(T::size > 0)>;\n"
        "auto has_size(...) -> truth<false>;\n"
        "template <class T> struct ALIGNED(16) pair { T first, second; };\n"
        "__device__ int told(truth<true>) { return 1; }\n"
        "__device__ int told(truth<false>) { return 2; }\n"
        "__global__ void k(int *x) { *x = told(decltype(has_size((pair<int> *)0)){}); }\n"
    )


def test_what_the_compiler_refuses_is_left_out_where_the_kernel_does_without():
    adds = "    Tensor &operator{}=(Tensor &o) {{ k<<<1, 32>>>(data); return o; }}\n"
    launches = "".join(map(adds.format, "+-*/%^&|<"))
    source = (
        "__global__ void k(int *x);\n"
        f"struct Tensor {{\n    int *data;\n{launches}}};\n"
        "__host__ __device__ swap(int *a, int *b) { *a = *b; }\n"
        "__global__ void k(int *x) { *x = 1; }\n"
    )
    assert "swap" in compiled(source).log.splitlines()[0]
    called = "__device__ int {}(int a) {{ return nothing; }}\n__global__ void k(int *x) {{ *x = {}(*x); }}"
    overloaded = "__device__ int twice(long a) { return 2 * a; }\n" + called.format("twice", "twice")
    assert 'identifier "nothing" is undefined' in refusal(called.format("twice", "twice")).what
    assert 'identifier "nothing" is undefined' in refusal(overloaded).what


def test_macros_that_open_a_namespace_stay_and_those_of_a_pragma_unroll():
    compiled(
        "#define BEGIN_MINE namespace mine {\n#define END_MINE }\n#define UNROLL #pragma unroll // all\n"
        "BEGIN_MINE\nstruct failed : std::exception { int code; };\nEND_MINE\n"
        "BEGIN_MINE\nstruct told { const char *text() { return cudaGetErrorString(1); } };\n"
        "__global__ void k(int *x) {\n    UNROLL\n    for (int i = 0; i < 4; i++) x[i] = i;\n}\nEND_MINE\n",
        "mine::k",
    )
    compiled(
        "#define OPEN(name) namespace name {\n#define BEGIN_MINE OPEN(mine)\n#define END(name) }\n"
        "#ifndef __cplusplus\n#define OPEN(name)\n#endif\n"
        "#define UNROLL \\\n    #pragma unroll (2 + \\\n        sizeof(int)) /* some */\n"
        '#define QUIET #pragma GCC diagnostic ignored "-Wall"\n'
        "OPEN(mine) struct failed : std::exception { int code; };\nEND(mine)\n"
        "BEGIN_MINE\nstruct told { const char *text() { return cudaGetErrorString(1); } };\n"
        "__global__ void k(int *x) {\n    QUIET\n    UNROLL\n    for (int i = 0; i < 4; i++) x[i] = i;\n}\n"
        "END(mine)\n",
        "mine::k",
    )
    error = refusal(
        "#define KERNEL(name) __global__ void name(int *x) {\n#define END }\n"
        "KERNEL(k)\n*x = 1;\n*x = lost();\nEND\nstruct failed : std::exception { int code; };\n"
    )
    assert 'identifier "lost" is undefined' in error.what


def test_a_kernel_or_a_function_that_stands_in_another_file_is_told():
    error = refusal("__global__ void k(int *x);")
    assert error.what == "mine.cu only declares the kernel k, in line 1."
    assert error.fix == "Run the file that defines it."
    assert compiled("__global__ void k();\n__global__ void k(int *x) { *x = 1; }").entry == "_Z1kPi"
    elsewhere = "__device__ int f(int);\n__global__ void k(int *x) { *x = f(1); }"
    assert "Unresolved extern function" in refusal(elsewhere).what
    assert "Another file defines it" in refusal(elsewhere).fix


def test_too_much_static_shared_memory_is_told_with_the_way_to_more():
    error = refusal("__global__ void k(int *x) { __shared__ int s[20000]; s[*x] = *x; *x = s[x[1]]; }")
    assert "uses too much shared data" in error.what
    assert "\0" not in error.what
    assert error.fix.startswith("More than 48 KiB must be extern __shared__")


def test_a_file_that_asks_for_it_keeps_every_function_for_the_device():
    source = "float f(float x) { return x + 1234; }\n__global__ void k(float *x) { *x = f(*x); }"
    made = compiled(source, options=[*OPTIONS, "-default-device"])
    assert made.registers_per_thread > 0
    error = refusal(source)
    assert 'identifier "f" is undefined' in error.what
    assert error.fix == "f is taken for the host's, and left out: what kernels call is marked __device__."


@pytest.mark.parametrize(
    "header",
    ["cuda_fp16.h", "cuda_bf16.h", "mma.h", "cuda_pipeline.h", "math_constants.h", "cuda/std/cstdint"],
)
def test_cudas_headers_are_found(header):
    assert not FOUND.missing, HEADERS_FIX
    made = compiled(f"#include <{header}>\n#include <cuda_runtime.h>\n#include <cmath>\n{KERNEL}")
    assert set(FOUND.options) <= set(made.options)


@SLOW
def test_groups_are_compiled_without_the_library_that_only_some_programs_take_from_them():
    source = """#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace groups = cooperative_groups;
__global__ void k(int *x)
{
    auto tile = groups::tiled_partition<32>(groups::this_thread_block());
    x[threadIdx.x] = groups::reduce(tile, x[threadIdx.x], groups::plus<int>());
}
"""
    alone, whole = (
        compiled(source),
        compiled(f"{source}using namespace cuda;\nstatic_assert(sizeof(atomic<int>) == 4);"),
    )
    assert GROUPS_ALONE in alone.options
    assert GROUPS_ALONE not in whole.options
    first, second = (
        re.sub(r"(?m)^\s*(//|\.loc).*\n", "", one.ptx.partition(".entry")[2].partition("\n}")[0])
        for one in (alone, whole)
    )
    assert first == second


@pytest.fixture
def nowhere(monkeypatch):
    """A machine without CUDA's headers."""
    monkeypatch.setattr(cuda_headers, "_places", lambda major: iter(()))


@pytest.mark.parametrize(
    "header", ["cuda_fp16.h", "cooperative_groups.h", "mma.h", "cuda/std/limits", "cub/block/block_scan.cuh"]
)
def test_missing_header_of_cudas_is_named_with_the_fix(nowhere, header):
    error = refusal(f"#include <{header}>\n{KERNEL}")
    assert f'"{header}"' in error.what
    assert error.fix == f"CUDA's headers were not found. {HEADERS_FIX}"
    assert "pip install '.[headers]'" in error.fix


def test_missing_part_of_the_standard_library_is_named_with_the_fix(nowhere):
    error = refusal(
        "#include <limits>\n__global__ void k(float *x) { *x = std::numeric_limits<float>::max(); }"
    )
    assert error.fix.startswith("For the device, std:: is part of CUDA's headers, which were not found.")


def test_header_of_nobody_says_where_it_was_looked_for(nowhere):
    unasked = "#ifdef NEVER\n#include <another.h>\n#endif\n"
    error = refusal(f'{unasked}#include "mine.h"\n__global__ void k(int *x) {{ *x = VALUE; }}')
    assert error.what.endswith("; of what it includes mine.h was not found.")
    assert error.fix.endswith("as DIR/mine.h of -I DIR.")
    halved = refusal('#include "mine.h"\n__global__ void k(half *x) { *x = 1; }')
    assert halved.what.endswith("; of what it includes mine.h was not found.")
    asked = refusal(f'#include "mine.h"\n#ifndef TILE\n#error "TILE, please"\n#endif\n{KERNEL}')
    assert asked.what.endswith('(3): catastrophic error: #error directive: "TILE, please".')
    assert "under `#ifndef TILE`: define what it wants" in asked.fix
    fenced = refusal(f"```cuda\n{KERNEL}")
    assert fenced.fix == "The line is no C++: ```cuda"
    misspelt = refusal('#include "mine.h"\n__global__ void k(int *x) { *x = threadIdxx.x; }')
    assert misspelt.fix.startswith("Did you mean threadIdx? Else: mine.h is looked for")
    named = refusal('#include "lib/nope.h"\n__global__ void k(int *x) { *x = LIBX; }')
    assert named.fix.startswith("lib/nope.h is looked for")
    drawn = "__global__ void k(float *x) { *x = curand_uniform(nullptr); }"
    assert "nvidia-curand" in refusal(f"#include <a.h>\n#include <curand_kernel.h>\n{drawn}").fix


def test_host_header_of_a_package_is_empty_unless_kernels_use_the_package():
    for include, empty in (("curand.h", True), ("curand_kernel.h", False)):
        program = make_program(f"#include <{include}>\n{KERNEL}", {}, OPTIONS, nvrtc_version()[0])
        assert ("curand.h" in program.headers) is empty


@pytest.mark.parametrize(
    "source",
    [
        f'#include "solve.h"\n#include <cfenv>\n{KERNEL}',
        f"#include <opencv2/opencv.hpp>\nusing namespace cv;\nusing namespace std;\n{KERNEL}",
        "struct F { F(float a) : a(a) {} __device__ float operator()(float x) { return a * x; } float a; };\n"
        "__global__ void k(F f, float *x) { *x = f(*x); }",
        "const float PI = 2.0 * std::asin(1.0);\nstruct T { __device__ T() {} };\n" + KERNEL,
        "__global__ void k(float *x) { *x = []__device__(float a) { return a; }(*x); }",
        "#include <cuda_runtime.h>\n__global__ void k(float *x) { cudaGridDependencySynchronize(); *x = 1; }",
        f"struct S {{ __extension__ union {{ float a; int b; }}; }};\n{KERNEL}",
        f"#include <curand_kernel.h>\nvoid seed(curandState *states);\n{KERNEL}",
        f"#include <json.hpp>\nusing json = nlohmann::json;\nstruct Read {{ json held; }};\n{KERNEL}",
        "#define BIND(name, T) \\\n  void run_##name(T x) { k<<<1, 1>>>(x); }\n"
        "#define MAKE(T) template void T<int>::all(std::vector<int>)\n#define BINDS(T) MAKE(T); BIND(T, T);\n"
        f"BIND(f, float)\nBIND(d,\n  double);\n{KERNEL}BINDS(Layer);\nBIND(i, int)",
        f"#define BIND(T) void run_##T(torch::Tensor x) {{ k<<<1, 1>>>(x); }}\n{KERNEL}"
        + "".join(f"BIND(t{number})\n" for number in range(12)),
        "struct Timer { cudaEvent_t a; };\nstruct Bench { Timer timer; };\n" + KERNEL,
        f"#include <vector>\nusing namespace std;\nclass Pool {{ vector<int> held; }};\n{KERNEL}",
        f"using Clock = std::chrono::steady_clock;\ntypedef std::map<int, int> Table;\n{KERNEL}",
        f"PYBIND11_MODULE(NAME, m) {{ m.def(1); }}\nEXPORT void run() {{ k<<<1, 2>>>(0); }}\n{KERNEL}",
        f'class Counter {{ long run() {{ unsigned a; asm("rdtsc" : "=a"(a)); return a; }} }};\n{KERNEL}',
        f"class Timer {{ struct timeval begun; }};\n{KERNEL}",
        "namespace boost { class run; }\nnamespace gflags = run;\nusing boost::run;\n" + KERNEL,
        f"PFNGLBINDBUFFER bind = 0;\nconst float root = sqrtf(3.0f);\nPOINT table[2];\n{KERNEL}",
        "struct Lock { int *held;\nLock() { CHECK(cudaMalloc(&held, 4)); } ~Lock() { cudaFree(held); }\n"
        "__device__ void lock() { while (atomicCAS(held, 0, 1)); } };\n"
        "__global__ void k(Lock lock) { lock.lock(); }",
        "class Engine {\nstd::string name;\npublic: enum { TILE = 4 }; struct Params { float a; };\n"
        "void run(std::string); };\n__global__ void k(Engine::Params p, float *x) { *x = p.a; }",
        "const int BLOCK_X = 16;\n__global__ void k(float *x) { *x = BLOCK_X - __FLT_MAX__; }",
        "#define OPEN namespace a {\n#define CLOSE }\nOPEN\n"
        "template <class T, bool> struct If { typedef T type; };\n"
        "template <class T> struct Big : If<T, (sizeof(T) > 2)> {};\nCLOSE\n"
        "__global__ void k(a::Big<float>::type *x) {}",
    ],
)
def test_what_only_the_host_has_is_not_missed(source):
    assert compiled(source).entry


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("struct S { flot a; };\n__global__ void k(S s, float *x) { *x = s.a; }", "(1): error: identifier"),
        (
            "struct S { float f() { retrun 1; } };\n__global__ void k(S s, float *x) { *x = s.f(); }",
            "(1): error: identifier",
        ),
        (
            "struct S { Unknown a; int n; };\n__global__ void k(S s, int *x) { *x = s.n; }",
            '(1): error: identifier "Unknown"',
        ),
        ("POINT p;\n__global__ void k(float *x) { *x = other; }", '(2): error: identifier "other"'),
        (
            "POINT sum;\n__global__ void k(float *x) { float sum = other; *x = sum; }",
            '(2): error: identifier "other"',
        ),
        (
            "template <class T> using All = std::vector<T>;\n__device__ Point one() { return Point(); }\n"
            "__global__ void k(Point *p) { *p = one(); }",
            '(3): error: identifier "Point"',
        ),
        ("static_assert(sizeof(int) == 8);\n" + KERNEL, "static assertion failed"),
        (
            "namespace near = far;\n__global__ void k(float *x) { *x = near::one(); }",
            "(1): error: name must be a namespace",
        ),
        ("__global__ void k(float *x) { *x = __shfl_down(1, 1); }", "__shfl_down"),
    ],
)
def test_what_is_wrong_with_device_code_is_told_though_more_was_left_out(source, told):
    assert told in refusal(source).what


def test_one_of_an_overloaded_function_is_named_by_its_parameters():
    pair = "".join(
        f"template <int N> __global__ void k({kind} *x, int) {{ *x = N; }}\n" for kind in ("int", "float")
    )
    names = [compiled(pair, f"k<3>({kind} *, int)").entry for kind in ("int", "float")]
    assert names == ["_Z1kILi3EEvPii", "_Z1kILi3EEvPfi"]
    assert refusal(pair, "k<3>").fix.endswith('entry = "k<3>(int *, int)".')


def test_a_template_is_told_what_its_parameter_lacks():
    source = "template <int N> __global__ void k(half *x, int n) { *x = N; }"
    assert refusal(source, "k<3>").fix == "Add #include <cuda_fp16.h>."


def toolkit(folder, version=13000, parts=("cuda_fp16.h", "crt/mma.h", "cuda/std/version")):
    for name in parts:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    (folder / "cuda_runtime_api.h").write_text(f"#define CUDART_VERSION  {version}\n")
    return folder


def test_a_toolkit_that_is_named_comes_before_packages_and_the_path(tmp_path, monkeypatch):
    named, other = toolkit(tmp_path / "named" / "include"), toolkit(tmp_path / "other" / "include", 12080)
    (tmp_path / "other" / "bin").mkdir()
    nvcc = tmp_path / "other" / "bin" / "nvcc"
    nvcc.write_text("#!/bin/sh\n")
    nvcc.chmod(0o755)
    monkeypatch.setenv("PATH", str(nvcc.parent))
    monkeypatch.setattr(cuda_headers, "find_spec", lambda name: None)
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.setenv(variable, str(tmp_path / "named"))
        found = find_cuda_headers(13)
        assert (found.directories, found.versions, found.missing) == ((named,), ("CUDA 13.0",), ())
        monkeypatch.delenv(variable)
    assert find_cuda_headers(13).directories == (other,)
    assert find_cuda_headers(13).versions == ("CUDA 12.8",)


def test_parts_may_come_from_several_packages(tmp_path, monkeypatch):
    root = tmp_path / "nvidia"
    runtime = toolkit(root / "cu13" / "include", parts=("cuda_fp16.h",))
    library = toolkit(root / "cu13" / "include" / "cccl", parts=("cuda/std/version",))
    toolkit(root / "cu12" / "include")
    spec = importlib.util.spec_from_loader("nvidia", None, is_package=True)
    spec.submodule_search_locations = [str(root)]
    monkeypatch.setattr(cuda_headers, "find_spec", lambda name: spec)
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(variable, raising=False)
    found = find_cuda_headers(13)
    assert found.directories[:3] == (runtime, root / "cu12" / "include", library)
    assert find_cuda_headers(12).directories == (root / "cu12" / "include",)


def test_doctor_says_where_the_headers_are_and_how_to_get_them(monkeypatch):
    found = doctor._cuda_headers()
    assert (found.title, found.state) == ("CUDA's headers", "ok")
    assert all(str(place) in found.text for place in FOUND.directories)
    monkeypatch.setattr(cuda_headers, "_places", lambda major: iter([Path(FOUND.directories[0])]))
    partly = doctor._cuda_headers()
    assert partly.state == ("ok" if len(FOUND.directories) == 1 else "absent")
    monkeypatch.setattr(cuda_headers, "_places", lambda major: iter(()))
    absent = doctor._cuda_headers()
    assert (absent.state, absent.fix) == ("absent", HEADERS_FIX)


@pytest.mark.parametrize(
    ("arch", "text", "target"),
    [
        ("sm_90", 'asm volatile("wgmma.fence.sync.aligned;");', "sm_90a"),
        ("sm_90", 'asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");', "sm_90a"),
        ("sm_90", 'asm volatile("wmma.load.a.sync.aligned;"); // not wgmma', "sm_90"),
        ("sm_80", 'asm volatile("wgmma.fence.sync.aligned;");', "sm_80"),
        ("sm_100", 'asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");', "sm_100"),
        ("sm_90", "", "sm_90"),
    ],
)
def test_target_follows_the_source(arch, text, target):
    assert target_of(arch, ("int x;", text)) == target
    assert architecture_of(target) == arch
