# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What of a file is for the device: everything that kernels can use stays, on its own line."""

import pytest

from gpuprof.cuda_source.declarations import declarations
from gpuprof.cuda_source.host_code import device_parts

KERNEL = "__global__ void k(float *x) { x[0] = 1; }"


def left(source):
    """The lines of a source that are not blank once the host's part is left out."""
    parts = device_parts({"": source})
    text = parts.texts[""]
    assert len(text) == len(source)
    assert text.count("\n") == source.count("\n")
    return [line.strip() for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize(
    "host",
    [
        "int main(int argc, char **argv) { return 0; }",
        "int main()\n{\n    k<<<1, 1>>>(nullptr);\n}",
        "void run(float *x) { k<<<1, 256>>>(x); }",
        "template <typename T> void run(T *x) { k<<<1, 256>>>(x); }",
        "static inline int rounded(int a, int b = 4) { return (a + b - 1) / b * b; }",
        "__host__ void f() {}",
        "void prototype(std::vector<float> &x);",
        "std::ostream &operator<<(std::ostream &out, const float4 &v) { return out; }",
        "void Timer::start() { cudaEventRecord(begin); }",
        "static cudaStream_t stream;",
        "struct timeval started, *other;",
        "std::vector<float> numbers = {1, 2, 3};",
        'extern "C" void wrapper(float *x) { k<<<1, 1>>>(x); }',
        'extern "C" { void one(float *x) { k<<<1, 1>>>(x); }\nvoid two(); }',
        "namespace host { void run() { cudaDeviceSynchronize(); } }",
        "inline void check(cudaError_t e, const char *f = __FILE__) { if (e) exit(1); }",
        "dim3 grid(1, 2);",
        "int MAX_TILES = 4 * sizeof(float);",
        "float fx = 1.0f, table[3] = {1, 2, 3}, *host_x;",
        "torch::Tensor forward(torch::Tensor x) { return x; }",
        "static auto registry = torch::RegisterOperators();",
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
        "template <typename T> __device__ T f(T x) { return x; }",
        "#define INLINE __device__ __forceinline__\nINLINE float f(float x) { return x; }",
        "DEVICE_FUNCTION float f(float x) { return x; }",
        "constexpr int up(int a, int b) { return (a + b - 1) / b; }",
        "const int N = 4; static const float pi = 3.14f; enum { A, B };",
        "struct Pair { float a, b; };",
        "struct Pair { float a; Pair(float x) : a(x) {} float get() const { return a; } };",
        "template <int N> struct Tile { float held[N] = {}; };",
        "__constant__ float table[4] = {1, 2, 3, 4};",
        "__device__ int counter;",
        "extern __shared__ float dynamic[];",
        "struct Boxed : Base { struct Inner { float x; } held; };",
        'static_assert(sizeof(int) == 4, "int");',
        "INSTANTIATE(32)\nDEFINE_KERNEL(float) { }",
        "template __global__ void many<4>(float *);",
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


def test_marks_hold_for_all_files_that_are_compiled_together():
    header = "#define GPU __device__\nvoid begin();\n"
    parts = device_parts({"": '#include "t.h"\nGPU int f() { return 1; }\nint timer;\n', "t.h": header})
    assert parts.texts["t.h"].split() == ["#define", "GPU", "__device__"]
    assert parts.texts[""].split("\n")[1:3] == ["GPU int f() { return 1; }", " " * len("int timer;")]
    assert parts.left_out == {"begin", "timer"}


@pytest.mark.parametrize(
    "source", ["void f() {", "}", "void f() { ( }", "#if A\nvoid f() {\n#else\nvoid g() {\n#endif\n"]
)
def test_file_whose_brackets_do_not_match_is_left_as_it_is(source):
    assert declarations(source) is None
    parts = device_parts({"": source})
    assert parts.texts == {"": source}
    assert parts.unmarked


def test_only_what_is_marked_needs_no_default():
    assert not device_parts({"": KERNEL + "\nusing A = int;\n__device__ int f();"}).unmarked
    assert device_parts({"": KERNEL + "\nconstexpr int f() { return 1; }"}).unmarked
    assert device_parts({"": "const int n = 3;"}).unmarked
