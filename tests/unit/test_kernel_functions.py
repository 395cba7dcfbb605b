# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The `__global__` functions of a source, how a header names one, and host code beside them."""

import pytest

from gpuprof.cuda_source.declarations import declarations
from gpuprof.cuda_source.functions import kernel_functions, template_names
from gpuprof.cuda_source.host_code import device_parts
from gpuprof.errors import InputError
from gpuprof.kernels.entries import default_entry, entry_complaint, function_name, sole_entry, with_values

TILED = """
namespace linear {
template <const int BM, int BN = 4, typename T = float>
__global__ void __launch_bounds__((BM * BN) / 2, 1)
    sgemm(int M, const T *__restrict__ A, float (&tile)[BN], void (*f)(int, int));
}
"""


def test_a_function_is_told_with_namespace_line_template_and_parameters():
    (function,) = kernel_functions(TILED)
    assert (function.name, function.line) == ("linear::sgemm", 5)
    assert function.template_names == ("BM", "BN", "T")
    assert function.entry == "linear::sgemm<BM, BN, T>"
    assert function.parameters == (
        "int M",
        "const T *__restrict__ A",
        "float (&tile)[BN]",
        "void (*f)(int, int)",
    )


@pytest.mark.parametrize(
    ("source", "entries"),
    [
        ("template <> __global__ void k<4>() {}", []),
        ("template __global__ void k<4>(float *);", []),
        ("template <class T> struct S {};\n__global__ void k(S<int> s) {}", ["k"]),
        ('#define KERNEL extern "C" __global__\nKERNEL void k() {}', ["k"]),
        ("namespace { __global__ void k() {} }", ["k"]),
        ("namespace a::b { __global__ void k() {} }", ["a::b::k"]),
        ("__global__ void k(", []),
        ("#if X\nvoid f() {\n#endif\ntemplate <int N> __global__ void k() {}", ["k<N>"]),
        ("__global__\nvoid\nspread\n(int n)\n{}", ["spread"]),
        ("static __global__ void inner() {} __global__ static void outer() {}", ["inner", "outer"]),
        ("void __global__ turned() {}", ["turned"]),
        ("template <int BM>\n__global__ void tiled(float *a) {}", ["tiled<BM>"]),
        ("__global__ void __launch_bounds__(256, 2) bounded() {}", ["bounded"]),
        ("__global__ BOUNDS(2 * N) void macro(int n) {}", ["macro"]),
        ("void __global__ behind(int n) __launch_bounds__(64) {}", ["behind"]),
        ("__launch_bounds__((BM * BN) / (TM * TN)) __global__ void computed() {}", ["computed"]),
        ("__global__ void twice(int); __global__ void twice(int n) {}", ["twice"]),
        ("// __global__ void gone() {}\n/* __global__ void\n away() {} */", []),
        ("", []),
    ],
)
def test_functions_are_found_as_far_as_the_text_tells(source, entries):
    assert [function.entry for function in kernel_functions(source)] == entries


def test_names_of_template_parameters_are_known():
    source = "template <int N = 3, template <class> class X, typename... Ts> struct S {};\nint a = b < c;"
    assert template_names(source) == {"N", "X", "Ts"}


ENTRIES = (
    *("k", "::k", "a::k", "k<64>", "k<-1>", "k<>", "k<sizeof(A) == 4>"),
    *("k()", "k(const float *, int)", "k<3>(a::b)"),
    "k < BM, (BN + 1) / 2, float4 *, a::b<3> >",
)
NO_ENTRIES = (
    *("", "3k", "a-b", "k<", "k>", "k(3)", "k<3>;", 'k<"a">', "k<a\\n>", "k<{1}>", "k <3> x", "<3>", "k<#>"),
    *("a::", "k<(>", "k<" + "1" * 600 + ">"),
)


@pytest.mark.parametrize(
    ("entry", "fits"), [*((one, True) for one in ENTRIES), *((one, False) for one in NO_ENTRIES)]
)
def test_entries_name_functions(entry, fits):
    assert (entry_complaint(entry) == "") is fits


def test_macros_in_an_entry_stand_for_their_values():
    values = {"BM": "64", "N": "-3", "real": "float", "sgemm": "oops"}
    assert with_values("sgemm<BM, N, real, BMX, BM/2>", values) == "sgemm<64, (-3), float, BMX, 64/2>"
    assert with_values(" sgemm ", values) == "sgemm"


@pytest.mark.parametrize(
    ("name", "bare"),
    [
        ("naive", "naive"),
        ("a::b::sgemm<64, (1 < 2)>", "sgemm"),
        ("(anonymous namespace)::k(int)", "k"),
        ("::k", "k"),
        ("", ""),
    ],
)
def test_profilers_and_headers_agree_on_a_functions_own_name(name, bare):
    assert function_name(name) == bare


@pytest.mark.parametrize(
    ("source", "parameters", "entry"),
    [
        ("__global__ void mine() {} __global__ void other() {}", (), "mine"),
        ("__global__ void other() {}", (), "other"),
        ("namespace a { __global__ void other() {} }", (), "a::other"),
        ("template <int BM> __global__ void other() {}", ("BM",), "other<BM>"),
        ("template <int BM> __global__ void other() {}", (), "mine"),
        ("__global__ void one() {} __global__ void two() {}", (), "mine"),
        ("", (), "mine"),
    ],
)
def test_a_header_without_entry_means_the_file_or_its_only_kernel(source, parameters, entry):
    assert default_entry(source, "mine", parameters) == entry


def test_the_entry_is_called_like_the_file_or_stands_alone():
    two = "__global__ void first() {} __global__ void second() {}"
    assert sole_entry(two, "second") == "second"
    assert sole_entry("__global__ void first() {}", "file") == "first"
    assert sole_entry("MACRO(file)", "file") == "file"
    with pytest.raises(InputError, match=r'file holds 2 kernels: first, second\. Say which: entry="first"'):
        sole_entry(two, "file")


KERNEL = "__global__ void k(float *x) { x[0] = 1; }"


def left(source):
    """The lines of a source that are not blank once the host's part is left out."""
    text = device_parts({"": source})[0][""]
    assert len(text) == len(source)
    assert text.count("\n") == source.count("\n")
    return [line.strip() for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize(
    "host",
    [
        "int main(int argc, char **argv) { return 0; }",
        "template __global__ void k<float,\n 3>(float *x);\nextern template struct S<3>;",
        "template <typename T> void run(T *x) { k<<<1, 256>>>(x); }",
        "static inline int rounded(int a, int b = 4) { return (a + b - 1) / b * b; }",
        "void prototype(std::vector<float> &x);",
        "std::ostream &operator<<(std::ostream &out, const float4 &v) { return out; }",
        "void Timer::start() { cudaEventRecord(begin); }",
        "static cudaStream_t stream;",
        "struct timeval started, *other;",
        'extern "C" { void one(float *x) { k<<<1, 1>>>(x); }\nvoid two(); }',
        "namespace host { void run() { cudaDeviceSynchronize(); } }",
        "inline void check(cudaError_t e, const char *f = __FILE__) { if (e) exit(1); }",
        "float fx = 1.0f, table[3] = {1, 2, 3}, *host_x;",
        "torch::Tensor forward(torch::Tensor x) { return x; }",
        'auto text = "}{" /* { */; void f() { puts("}"); } // {',
        "__host__ inline __half2 run(__half a, __half b) { return __halves2half2(a, b); }",
        "#if A\nnamespace a {\n#else\nnamespace a { void run() { }\n#endif\n}",
    ],
)
def test_host_code_is_left_out_and_the_kernel_stays(host):
    kept = left(f"{host}\n{KERNEL}\n{host}")
    assert KERNEL in kept
    rest = " ".join(line for line in kept if line != KERNEL)
    for word in ("main", "run", "cuda", "std::", "<<<", "exit", "puts", "grid", "__host__"):
        assert word not in rest


@pytest.mark.parametrize(
    "device",
    [
        "__device__ float f(float x) { return x; }",
        "__host__ __device__ inline float f(float x) { return x; }",
        "#define INLINE __device__ __forceinline__\nINLINE float f(float x) { return x; }",
        "DEVICE_FUNCTION float f(float x) { return x; }",
        "constexpr int up(int a, int b) { return (a + b - 1) / b; }",
        "const int N = 4; static const float pi = 3.14f; enum { A, B };",
        "struct Pair { float a; Pair(float x) : a(x) {} float get() const { return a; } };",
        "template <int N> struct Tile { float held[N] = {}; };",
        "__constant__ float table[4] = {1, 2, 3, 4};",
        "extern __shared__ float dynamic[];",
        "struct Boxed : Base { struct Inner { float x; } held; };",
        'static_assert(sizeof(int) == 4, "int");',
        "INSTANTIATE(32)\nDEFINE_KERNEL(float) { }",
        "namespace a { namespace b { __device__ int f() { return 1; } } }",
        "#ifdef GPU\nnamespace a { __device__ int f();\n#else\nnamespace a {\n#endif\n}",
    ],
)
def test_what_kernels_can_use_stays(device):
    assert " ".join(left(device + "\n" + KERNEL)) == " ".join((device + " " + KERNEL).split("\n"))


def test_a_type_that_a_function_of_the_host_declares_by_naming_it_stays_declared():
    source = 'extern "C" {\nint build(struct Data *data, struct tm);\n}\ntypedef int (*Build)(Data *);\n'
    assert left(source + KERNEL)[1] == "struct Data;       struct tm;"


def test_a_text_that_is_continued_in_a_macro_does_not_end_the_macro():
    check = '#define CHECK(a) \\\n  do { printf("in \\\n : %d", __LINE__); \\\n  } while (0)\n'
    assert left(f"{check}void f() {{ CHECK(1); }}\n{KERNEL}")[-1] == KERNEL
    assert declarations(check + KERNEL) is not None


def test_a_macro_that_only_makes_instances_is_not_called():
    makes = "#define MAKE(T, n) \\\n  template __global__ void t<T, n>(T *); \\\n  template struct S<T>;\n"
    other = "#define BOTH(T) template struct S<T>; __device__ T x;\n"
    calls = "MAKE(float, 3)\n  MAKE(int,\n 4);\nBOTH(int)\n"
    assert left(f"{makes}{other}{calls}{KERNEL}")[4:] == ["BOTH(int)", KERNEL]


def test_marks_hold_for_all_files_that_are_compiled_together():
    header = "#define GPU __device__\nvoid begin();\n"
    texts, left_out, _ = device_parts(
        {"": '#include "t.h"\nGPU int f() { return 1; }\nint timer;\n', "t.h": header}
    )
    assert texts["t.h"].split() == ["#define", "GPU", "__device__"]
    assert texts[""].split("\n")[1:3] == ["GPU int f() { return 1; }", " " * len("int timer;")]
    assert left_out == {"begin", "timer"}


@pytest.mark.parametrize(
    "source", ["void f() {", "}", "void f() { ( }", "#if A\nvoid f() {\n#else\nvoid g() {\n#endif\n"]
)
def test_file_whose_brackets_do_not_match_is_left_as_it_is(source):
    assert declarations(source) is None
    texts, _, unmarked = device_parts({"": source})
    assert texts == {"": source}
    assert unmarked


def test_only_what_is_marked_needs_no_default():
    assert not device_parts({"": KERNEL + "\nusing A = int;\n__device__ int f();"})[2]
    assert device_parts({"": KERNEL + "\nconstexpr int f() { return 1; }"})[2]
    assert device_parts({"": "const int n = 3;"})[2]
