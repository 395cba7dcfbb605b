# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What is made of NVRTC's complaints, and whether the kernel or its compiler is wrong."""

from pathlib import Path

import numpy as np
import pytest
from cuda_sources import kernel_file

from gpuprof.backends.base import CompileOnlyBackend
from gpuprof.backends.sim.backend import SimBackend
from gpuprof.backends.sim.traced import TracedCase
from gpuprof.devices.cards import load_card
from gpuprof.errors import CaseFailure, CompileError
from gpuprof.kernels.kernel import Built
from gpuprof.kernels.paths import Source, ladder_of
from gpuprof.measure import compiler_check
from gpuprof.measure.case import Case
from gpuprof.measure.compiler_check import compiler_remarks
from gpuprof.measure.execute import Compiler
from gpuprof.problems.problem import Problem
from gpuprof.records import replace
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
            f"Did you mean {near}? Neither"
        )


@pytest.mark.parametrize(
    ("error", "fix"),
    [
        ('calling a __host__ function("f") from a __global__ function("k") is not allowed', MARK_IT),
        ("a host function cannot be called here", MARK_IT),
        ("expected a ;", ""),
        ('cannot open source file "curand_kernel.h"', "It comes with the package nvidia-curand, or a whole"),
        ('could not open source file "cute/tensor.hpp"', "It comes with the package nvidia-cutlass, or"),
        ('could not open source file "lib/mine.h"', "lib/mine.h is looked for beside the file that"),
        ('could not open source file "cuda_fp16.h"', "CUDA's headers were found, but not this one"),
        ('could not open source file "cuda_rys_sp.h"', "cuda_rys_sp.h is looked for beside the"),
        ('could not open source file "cub/cub.cuh"', "CUDA's headers were found, but not this one"),
        ('namespace "std" has no member "array"', ""),
        ('identifier "nonsense" is undefined', "Neither the file nor what it includes declares it"),
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
    assert explained(first, during, mine)[0].endswith(f"{first}, from line 29 of k.cu.")
    what, fix = explained(first, during, "", "k.cu(3): error: other", mine)
    assert what.endswith(f"{first}.")
    assert "[parameters]" in fix
    assert explained("/cuda/config.h(2): catastrophic error: #error directive: C++17", "", "")[1] == ""


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


@pytest.mark.parametrize(
    ("column", "fix"),
    [(9, "pad is a macro there, of the kernel's header or -D: give it another name."), (5, "")],
)
def test_a_name_of_a_header_that_an_option_makes_a_macro_is_told(column, fix):
    lines = (
        "cuda.h(9): error: expected an identifier",
        "  short pad[64];",
        " " * (column - 1) + "^",
        "",
        "1 error",
    )
    given = replace(program(), options=("-DBM=4", "-Dpad=128"))
    assert explain(given, "k.cu", ["k"], STATUS, "\n".join(lines)).fix == fix


def test_a_statement_expression_of_gnu_c_is_told():
    source = "#define MIN(a, b) ({ int c = a; c < b ? c : b; })\n"
    assert fix_of("expected an expression", source=source).startswith("NVRTC has no `({ … })` of GNU C")
    assert fix_of('expected a ";"', source=source) == ""
    assert fix_of("expected an expression", source="void k(float *y) { f({1}, y[ ]); }\n") == ""


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
    assert error.fix == "Write it in entry, or an integer as B = … under [parameters] or [constants]."
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
    left_out = "the preprocessor leaves it out: `#ifdef FAST` does not hold"
    assert error.what == f"k.cu has a kernel k in line 3, but {left_out}."
    assert "-D NAME" in error.fix
    assert explain(program(source), "k.cu", ["k(int)"], STATUS, log % ("k", "k")).what == error.what
    within = replace(program(f"#if FAST\nnamespace n {{ {source} }}\n#endif\n"), absent=("settings.h",))
    why = '__nv_name_map(1): error: name followed by "::" must be a class or namespace name'
    error = explain(within, "k.cu", ["n::other"], STATUS, f"{why}\nn::other")
    assert error.what.endswith("`#if FAST` does not hold; not found: settings.h.")
    assert "-I DIR. Or: Define what that asks for" in error.fix
    elsewhere = explain(program(source), "k.cu", ["in"], STATUS, log % ("in", "in"))
    assert elsewhere.what.startswith('k.cu defines no kernel in: identifier "in" is undefined. ')
    assert elsewhere.fix == 'Set entry in the header, for example entry = "n::in".'


def test_kernels_of_carried_files_count_too():
    error = no_such_kernel(program("", {"a.cuh": "__global__ void other() {}"}), "k.cu", "k", "the log")
    assert error.what == "k.cu defines no kernel k. Its __global__ functions: other (line 1)."
    none = no_such_kernel(program("int x;"), "k.cu", "k", "the log")
    assert none.what == "k.cu defines no kernel k: there is no __global__ function in it."
    assert none.log == "the log"


SOURCE = kernel_file("squares")
DEVICE = load_card("h200")


class Card(CompileOnlyBackend):
    """A GPU that runs PTX in the place of machine code, unless that is a compiler's own."""

    def __init__(self, assemble):
        super().__init__(DEVICE, "")
        self.assemble = assemble
        self._executor = SimBackend(DEVICE)

    def outputs(self, case, compiled):
        run = {
            entry: replace(each, ptx=each.ptx if each.cubin.startswith(b"\x7fELF") else each.cubin.decode())
            for entry, each in compiled.items()
        }
        buffers, _ = TracedCase(self._executor, case, run).written()
        return {spec.name: np.array(buffers[spec.name].array()) for spec in case.problem.outputs}


def refuses(ptx, name):
    raise CompileError("ptxas refuses it.", log="")


def remarks(assemble, source=SOURCE, size=1000, **changed):
    ladder = ladder_of([Source(source, "sums")])
    (kernel,) = ladder.kernels
    case = Case.of(replace(kernel, **changed), Problem.of(ladder.operation, (size,), "f32"))
    said, lost = compiler_remarks(case, Card(assemble), SimBackend(DEVICE), Compiler("sm_90"))
    assert not lost
    return said


@pytest.fixture(autouse=True)
def no_others(monkeypatch):
    monkeypatch.setattr(compiler_check, "found_ptxas", lambda: ())


def changed(old, new):
    """A compiler that makes something else of an instruction."""

    def assemble(ptx, name):
        assert old in ptx
        return ptx.replace(old, new).encode(), ""

    return assemble


def test_compilers_that_agree_are_named():
    (said,) = remarks(changed("fma.rn.f32", "fma.rn.f32"))
    assert said == "Right machine code of its PTX, checked at 1000, by 2: NVRTC and the driver"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("fma.rn.f32", "fma.rn.sat.f32", "at size 4, 2 of 4 elements of y"),
        ("mad.lo.s32", "mad.hi.s32", "at size 100, 36 of 100 elements of y"),
        ("%ctaid.x", "%nctaid.x", "at size 1, 1 of 1 elements of y"),
    ],
)
def test_a_wrong_one_is_named_with_elements_line_and_a_small_size(old, new, told):
    said = remarks(changed(old, new))
    assert said[0].startswith(f"the driver makes wrong machine code of its PTX: {told} are not")
    assert said[0].endswith("which line 22 stores")
    assert said[1].endswith("by 1: NVRTC")


def test_outputs_without_an_order_are_compared_in_ascending_order():
    compaction = kernel_file("compaction")
    assert remarks(changed("st.global", "st.global"), compaction)[0].endswith("by 2: NVRTC and the driver")
    said = remarks(changed("setp.lt.s32", "setp.gt.s32"), compaction)[0]
    assert "elements of y are not what" in said
    assert said.endswith(", in ascending order")


def test_a_size_that_a_formula_does_not_take_is_left_out():
    tiled = SOURCE.replace("x * x + x", "ravel(reshape(x, (n // 500, 500)) * reshape(x, (n // 500, 500)))")
    tiled = tiled.replace("* x[i] + x[i]", "* x[i]")
    said = remarks(changed("mul.f32", "add.f32"), tiled)[0]
    assert said.startswith("the driver makes wrong machine code of its PTX: at size 1000, ")


def test_shared_memory_that_is_read_unwritten_and_unused_is_no_hindrance():
    source = SOURCE.replace(
        "    if (i < n)\n        y[i] = x[i] * x[i] + x[i];",
        """    __shared__ float tile[64];
    if (i < n)
        tile[threadIdx.x] = x[i];
    __syncthreads();
    const float v = *(volatile float *)(tile + threadIdx.x);
    if (i < n)
        y[i] = v * v + v;""",
    )
    (said,) = remarks(changed("fma", "fma"), source)
    assert said.endswith("by 2: NVRTC and the driver")


def test_what_rounding_allows_is_no_difference():
    assert remarks(changed("fma.rn.f32", "fma.rz.f32"))[0].endswith("by 2: NVRTC and the driver")


def test_a_wrong_kernel_is_not_the_compilers_fault():
    (said,) = remarks(changed("fma", "fma"), SOURCE.replace("+ x[i];", "- x[i];"))
    assert said.startswith(
        "The compiler is not to blame: at 1000 the executor, which runs its PTX, finds y wrong too"
    )


def test_what_cannot_be_checked_is_said():
    assert "not checked: the driver (ptxas refuses it)" in remarks(refuses)[0]
    faults = SOURCE.replace("if (i < n)", "if (true)")
    assert remarks(refuses, faults)[0].startswith(
        "Compilers are not checked: the executor finds another fault"
    )
    broken = Built(error="Triton does not compile it.")
    assert remarks(refuses, built=broken) == ("Compilers are not checked: Triton does not compile it",)


def test_code_that_fails_is_told_of_the_compiler_that_made_it(monkeypatch):
    def outputs(card, case, compiled):
        if all(each.cubin.startswith(b"\x7fELF") for each in compiled.values()):
            return own(card, case, compiled)
        raise CaseFailure("Misaligned address.", fatal=True)

    own = Card.outputs
    monkeypatch.setattr(Card, "outputs", outputs)
    ladder = ladder_of([Source(SOURCE, "sums")])
    case = Case.of(ladder.kernels[0], Problem.of(ladder.operation, (1000,), "f32"))
    card = Card(changed("fma", "fma"))
    said, lost = compiler_remarks(case, card, SimBackend(DEVICE), Compiler("sm_90"))
    assert said == ("the driver makes machine code of its PTX that fails at 1000: Misaligned address",)
    assert lost


@pytest.mark.deep
def test_a_large_case_is_checked_at_a_size_like_it():
    assert "checked at 4194304, by 2" in remarks(changed("fma", "fma"), size=1 << 28)[0]
