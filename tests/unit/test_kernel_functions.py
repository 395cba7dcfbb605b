# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The `__global__` functions of a source, and how a header names one."""

import pytest

from gpuprof.cuda_source.functions import kernel_functions, template_names
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
        ("__global__ void k(int a) {}\n__global__ void k(float a) {}", ["k"]),
        ("template <class T> struct S {};\n__global__ void k(S<int> s) {}", ["k"]),
        ('#define KERNEL extern "C" __global__\nKERNEL void k() {}', ["k"]),
        ("namespace { __global__ void k() {} }", ["k"]),
        ("namespace a::b { __global__ void k() {} }", ["a::b::k"]),
        ("__global__ void k(", []),
        ("void f() { __global__; }", []),
        ("#if X\nvoid f() {\n#endif\ntemplate <int N> __global__ void k() {}", ["k<N>"]),
        ('extern "C" __global__ void one(int n) {}', ["one"]),
        ("__global__\nvoid\nspread\n(int n)\n{}", ["spread"]),
        ("static __global__ void inner() {} __global__ static void outer() {}", ["inner", "outer"]),
        ("void __global__ turned() {}", ["turned"]),
        ("template <int BM>\n__global__ void tiled(float *a) {}", ["tiled<BM>"]),
        ("__global__ void __launch_bounds__(256, 2) bounded() {}", ["bounded"]),
        ("__launch_bounds__((BM * BN) / (TM * TN)) __global__ void computed() {}", ["computed"]),
        ("__global__ void twice(int); __global__ void twice(int n) {}", ["twice"]),
        ("// __global__ void gone() {}\n/* __global__ void\n away() {} */", []),
        ("__device__ void helper() {} void host() {}", []),
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
        ("void linear::sgemm<64, float>(int, float *)", "sgemm"),
        ("(anonymous namespace)::k(int)", "k"),
        ("void (anonymous namespace)::k<1>(int)", "k"),
        ("::k", "k"),
        ("", ""),
    ],
)
def test_profilers_and_headers_agree_on_a_functions_own_name(name, bare):
    assert function_name(name) == bare


@pytest.mark.parametrize(
    ("source", "parameters", "entry"),
    [
        ("__global__ void mine() {}", (), "mine"),
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
