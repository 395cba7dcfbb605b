# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What is made of NVRTC's complaints: the one that tells, and what to do about it."""

from pathlib import Path

import pytest

from gpuprof.toolchain.complaints import explain, no_such_kernel
from gpuprof.toolchain.cuda_headers import CudaHeaders
from gpuprof.toolchain.nvrtc_program import NvrtcProgram

FOUND = CudaHeaders((Path("/include"),), (), ("CUDA 13.0",))
STATUS = "NVRTC_ERROR_COMPILATION"
MARK_IT = "Mark it __device__, or keep host code between #ifndef __CUDACC_RTC__ and #endif."


def program(source="", headers=None, cuda_headers=FOUND, left_out=()):
    return NvrtcProgram(source, headers or {}, (), cuda_headers, frozenset(left_out))


def explained(*lines, **given):
    """What is said of errors in a kernel file, and the fix."""
    error = explain(program(**given), "k.cu", ["k"], STATUS, "\n".join(lines))
    return error.what, error.fix


def fix_of(error, **given):
    what, fix = explained(f"k.cu(3): error: {error}", **given)
    assert what == f"k.cu does not compile ({STATUS}): k.cu(3): error: {error}" + "." * bool(fix)
    return fix


def test_what_a_condition_keeps_undeclared_is_told_with_the_condition():
    text = "#if HAVE_IT == 1\n#ifdef WIDE\n#else\ntypedef float Held;\n#endif\n#endif\n"
    given = {"headers": {"a.h": f"#ifndef A_H\n#define A_H\n{text}#endif\n"}, "source": "#define OTHER 1\n"}
    fix = fix_of('identifier "Held" is undefined', **given)
    assert fix == (
        "It is declared in line 6 of a.h, under `#if HAVE_IT == 1` and `#else`: define what that asks for, by"
        " define in the header, or -D NAME[=VALUE]."
    )
    assert fix_of('identifier "OTHER" is undefined', **given) == ""
    for name, near in (("blokIdx", "blockIdx"), ("__syncthread", "__syncthreads"), ("Other", "OTHER")):
        assert fix_of(f'identifier "{name}" is undefined', **given).startswith(
            f"Did you mean {near}? Nothing"
        )


@pytest.mark.parametrize(
    ("error", "fix"),
    [
        ('calling a __host__ function("f") from a __global__ function("k") is not allowed', MARK_IT),
        ("a host function cannot be called here", MARK_IT),
        ("expected a ;", ""),
        ('cannot open source file "curand_kernel.h"', "It comes with the package nvidia-curand, or a whole"),
        ('could not open source file "cute/tensor.hpp"', "It comes with the package nvidia-cutlass, or"),
        (
            'could not open source file "mine.h"',
            "It is looked for beside the kernel file, and in the folders",
        ),
        ('could not open source file "cuda_fp16.h"', "CUDA's headers were found, but not this one"),
        ('could not open source file "cuda_rys_sp.h"', "It is looked for beside the kernel file"),
        ('could not open source file "cub/cub.cuh"', "CUDA's headers were found, but not this one"),
        ('namespace "std" has no member "array"', ""),
        ('identifier "nonsense" is undefined', "Nothing in the file, or in what it includes, declares it"),
        (
            'identifier "cudaStreamCreate" is undefined',
            "It is of CUDA's runtime, for the host: keep it between",
        ),
        ('identifier "half" is undefined', "Add #include <cuda_fp16.h>."),
        ('identifier "__half2" is undefined', "Add #include <cuda_fp16.h>."),
    ],
)
def test_errors_have_their_own_fix(error, fix):
    found = fix_of(error)
    assert found.startswith(fix) if fix else found == ""


def test_an_error_of_a_header_names_the_line_that_it_comes_from():
    first = '/cuda/scan.h(225): error: static assertion failed with "no tile"'
    during = "          detected during:\n            instantiation of x at line 240"
    mine = '            instantiation of y at line 29 of "k.cu"'
    assert explained(first, during, mine)[0].endswith(f"{first}, from line 29 of k.cu")
    assert explained(first, during, "", "k.cu(3): error: other", mine)[0].endswith(first)


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        (
            "__global__ void k(float *y, int N) {}",
            "N is a macro in this line, 1024 since line 1: rename one of",
        ),
        (
            "__global__ void k(const unsigned int N) {}",
            "N is a macro in this line, 1024 since line 1: rename",
        ),
        ("__global__ void k(float *N) {}", "N is a macro in this line, 1024 since line 1: rename one of"),
        ("__global__ void k(float *y, int n) { y[N] = }", ""),
        ("__global__ void k(float *y, int M) {}", ""),
    ],
)
def test_a_name_that_a_macro_replaces_is_told(line, fix):
    found = fix_of('expected a ")"', source=f"#define N 1024\n\n{line}\n")
    assert found.startswith(fix) if fix else found == ""


def test_a_texture_reference_is_told_as_what_cuda_no_longer_has():
    given = {"source": "float f(int i) { return tex1Dfetch<float>(t, i); }\n", "left_out": ("t",)}
    assert fix_of('identifier "t" is undefined', **given) == (
        "CUDA 12 has no texture references: make t an argument, a cudaTextureObject_t."
    )


def test_a_template_without_values_is_asked_for_them():
    source = "template <int B, typename T> __global__ void k(T *y) {}\n"
    log = '__nv_name_map(1): error: identifier "B" is undefined\n  name expression: "k<B, T>"'
    error = explain(program(source), "k.cu", ["k<B, T>"], STATUS, log)
    assert error.what == "k.cu has a kernel k<B, T> in line 1, and B has no value."
    assert error.fix == "Write the value in entry, or, if it is an integer, B = … under [parameters]."
    assert no_such_kernel(program(source), "k.cu", "mine", "the log").fix == (
        'Set entry in the header, for example entry = "k<B, T>", where B and T stand for a type such as real,'
        " a number, or an integer of [parameters]."
    )


def test_first_error_of_the_file_itself_is_shown_unless_it_only_marks_another():
    first, second = "k.cu(3): error: expected a ;", 'k.cu(4): error: identifier "x" is undefined'
    counted = "2 errors detected in the compilation."
    assert explained("k.cu(1): warning: unused", first, second, counted)[0].endswith(first)
    mark = "k.cu(2): error: attribute does not apply here"
    assert explained(mark, first, second)[0].endswith(f"{second}.")
    assert explained(mark, first)[0].endswith(mark)
    member = 'k.cu(2): error: namespace "a" has no member "b"'
    assert explained(mark, member, second)[0].rstrip(".").endswith(member)
    assert explained("", "1 warning")[0] == f"k.cu does not compile ({STATUS}): see the log."


@pytest.mark.parametrize(
    ("complaint", "reason"),
    [
        ("cannot determine which instance.", "cannot determine which instance"),
        ("Error in parsing name expression", "it is not the name of a function"),
        ("Extra tokens at the end", "it is not the name of a function"),
    ],
)
def test_complaint_about_a_kernels_name_is_about_the_one_in_the_log(complaint, reason):
    source = "__global__ void one() {}\ntemplate <int N> __global__ void two() {}\n"
    log = f'__nv_name_map(1): error: {complaint}\n  name expression: "two<x>"\n1 error detected.'
    error = explain(program(source), "k.cu", ["one<3>", "two<x>"], STATUS, log)
    assert error.what.startswith(f"k.cu defines no kernel two<x>: {reason}. Its __global__ functions: ")
    assert error.log == log
    absent = explain(program(source), "k.cu", ["first", "second"], STATUS, "__nv_name_map(1): error: no")
    assert absent.what.startswith("k.cu defines no kernel first. ")


def test_kernel_that_the_preprocessor_leaves_out_is_said_to_be_there():
    source = """__global__ void other() {}
#ifdef FAST
__global__ void k() {}
#endif
namespace n { __global__ void in() {} }
"""
    log = '__nv_name_map(1): error: identifier "%s" is undefined\n  name expression: "%s"'
    error = explain(program(source), "k.cu", ["k"], STATUS, log % ("k", "k"))
    left_out = "the preprocessor leaves it out: a condition around it does not hold"
    assert error.what == f"k.cu has a kernel k in line 3, but {left_out}."
    assert "-D NAME" in error.fix
    elsewhere = explain(program(source), "k.cu", ["in"], STATUS, log % ("in", "in"))
    assert elsewhere.what.startswith('k.cu defines no kernel in: identifier "in" is undefined. ')
    assert elsewhere.fix == 'Set entry in the header, for example entry = "n::in".'


def test_kernels_of_carried_files_count_too():
    error = no_such_kernel(program("", {"a.cuh": "__global__ void other() {}"}), "k.cu", "k", "the log")
    assert error.what == "k.cu defines no kernel k. Its __global__ functions: other (line 1)."
    none = no_such_kernel(program("int x;"), "k.cu", "k", "the log")
    assert none.what == "k.cu defines no kernel k: there is no __global__ function in it."
    assert none.log == "the log"
