# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a kernel takes against what its header says: passed as wide as it is taken, or refused by name."""

import struct
from pathlib import Path

import pytest
from compile_support import compile_source
from problem_support import Gemm, Transpose
from unit_support import DEVICE, parse_kernel

from gpuprof.backends.arguments import ArrayArgument, ValueArgument, bind_arguments, points_to
from gpuprof.errors import CaseFailure
from gpuprof.kernels.shape import configure
from gpuprof.problems.dtypes import ELEMENT_TYPES
from gpuprof.problems.problem import Problem
from gpuprof.records import replace
from gpuprof.toolchain.nvrtc import compiler_options
from gpuprof.toolchain.signature import declared_parameters, parameters_of

HEADER = """/*gpuprof
title = "x"
problem = "{problem}"
dtypes = ["f32", "f64"]
arguments = [{arguments}]
[launch]
block = [32]
grid = ["1"]
*/
"""
NAMES = {"gemm": ["M", "N", "K", "alpha", "A", "B", "beta", "C"], "transpose": ["nx", "ny", "in", "out"]}


def bind(signature, problem, arch="sm_90"):
    names = ", ".join(f'"{name}"' for name in NAMES[problem.operation.name])
    source = HEADER.format(problem=problem.operation.name, arguments=names)
    source += "#include <cuda_fp16.h>\n" * ("half" in signature)
    source += f'extern "C" __global__ void k({signature}) {{ }}'
    kernel = parse_kernel(source, Path("k.cu"))
    shape = configure(kernel, problem, (32, 1, 1), {}, DEVICE)
    defines = [("real", "float" if problem.dtype == "f32" else "double")]
    compiled = compile_source(kernel.source, "k.cu", "k", compiler_options(arch, defines))
    return bind_arguments(shape, shape.launches[0], compiled)


def test_each_argument_is_as_wide_as_the_kernel_takes_it():
    numbers = "int M, long long N, size_t K, double alpha"
    bound = bind(
        f"{numbers}, const float *A, real *__restrict__ B, float b, real C[]",
        Gemm(3, 2**31 - 1, 5, alpha=0.1, beta=-2.0),
    )
    assert bound == (
        ValueArgument("M", struct.pack("<i", 3)),
        ValueArgument("N", struct.pack("<q", 2**31 - 1)),
        ValueArgument("K", struct.pack("<q", 5)),
        # The number that the reference computes with: rounded to float, whatever holds it.
        ValueArgument("alpha", struct.pack("<d", struct.unpack("<f", struct.pack("<f", 0.1))[0])),
        ArrayArgument("A"),
        ArrayArgument("B"),
        ValueArgument("beta", struct.pack("<f", -2.0)),
        ArrayArgument("C"),
    )


def test_a_half_is_passed_in_a_run_of_another_type():
    scalars = {name: replace(one, type="f16") for name, one in Gemm(1, 1, 1).operation.scalars.items()}
    operation = replace(Gemm(1, 1, 1).operation, scalars=scalars)
    problem = Problem.of(operation, (3, 4, 5), "f32", {"alpha": 0.1, "beta": -2.0}, {"layout": "row"})
    bound = bind("int M, int N, int K, half alpha, real *A, real *B, float b, real *C", problem)
    values = {one.name: one.content for one in bound if isinstance(one, ValueArgument)}
    assert (values["alpha"], values["beta"]) == (struct.pack("<e", 0.1), struct.pack("<f", -2.0))


@pytest.mark.parametrize(
    ("signature", "words"),
    [
        ("char nx, int ny, real *in, real *out", "argument 1 of k is `char nx`, a 1-byte integer, and nx"),
        ("int nx, short ny, real *in, real *out", "argument 2 of k is `short ny`, a 2-byte integer, and ny"),
        ("float nx, int ny, real *in, real *out", "is `float nx`, a 4-byte float, and nx is a size"),
        ("int nx, int ny, int in, real *out", "3 of k is `int in`, a 4-byte integer, and in is an"),
        ("int nx, int ny, long long in, real *out", "argument 3 of k is `long long in`, an 8-byte integer,"),
        ("int nx, int ny, double *in, real *out", "argument 3 of k is `double \\*in`, .* in is an array of"),
        ("real *in, real *out, int nx, int ny", "`int nx`.* in is an array of float; .*`int ny`.* out is"),
        ("const real *nx, int ny, double *in, real *out", r"1 of k is `const real \*nx`, a pointer, and nx"),
        ("int3 nx, int ny, real *in, real *out", r"`int3 nx`, a struct of 12 bytes, and nx is a size"),
        ("int nx, int ny, real *in", r"is given 4 arguments \(nx, ny, in, out\); k takes 3: int nx, "),
        ("int nx, int ny, real *in, real *out, int more", "is given 4 arguments .* takes 5"),
        ("", "is given 4 arguments .* takes 0"),
    ],
)
def test_misfit_is_refused_by_name(signature, words):
    with pytest.raises(CaseFailure, match=words):
        bind(signature, Transpose(64, 64))
    # Newer PTX tells pointers even where a macro hides the type.
    if "long long in" in signature or "*nx" in signature:
        with pytest.raises(CaseFailure, match=words):
            bind(signature, Transpose(64, 64), arch="sm_100")


def test_parameters_that_bear_the_arguments_names_tell_the_order():
    with pytest.raises(CaseFailure) as caught:
        bind("const float *In, float *OUT, int nx, int ny", Transpose(64, 64))
    assert caught.value.fix == 'By its parameters\' names: arguments = ["in", "out", "nx", "ny"].'
    with pytest.raises(CaseFailure) as caught:
        bind("float *out, float *in, int ny, int nx, int more", Transpose(64, 64))
    assert caught.value.fix == "Make arguments in the header say what the kernel takes, in order."


@pytest.mark.parametrize(
    ("pointer", "held", "fix"),
    [
        ("half *", "u16", 'Say in arguments what they hold: "in as f16" and "out as f16".'),
        ("int *", "u8", 'Say in arguments what they hold: "in as i32" and "out as i32".'),
        ("float *", "i64", "Fix the kernel's parameters, or in its header or call the order of arguments or"),
    ],
)
def test_integers_that_hold_other_bits_are_proposed_to_be_said_so(pointer, held, fix):
    operation = Transpose(64, 64).operation
    arrays = {name: replace(one, dtype=held) for name, one in operation.arrays.items()}
    problem = Problem.of(replace(operation, arrays=arrays, coded=""), (64, 64))
    with pytest.raises(CaseFailure) as caught:
        bind(f"int nx, int ny, {pointer}in, {pointer}out", problem)
    assert caught.value.fix.startswith(fix)


HALF, FLOAT, INT, LONG = (ELEMENT_TYPES[name] for name in ("f16", "f32", "i32", "i64"))


@pytest.mark.parametrize(
    ("written", "element", "fits"),
    [
        ("float *", FLOAT, True),
        ("double *", FLOAT, False),
        ("half *", FLOAT, False),
        ("half *", HALF, True),
        ("__half *", HALF, True),
        ("__nv_bfloat16 *", HALF, False),
        ("float *", INT, False),
        ("int *", INT, True),
        ("int32_t *", INT, True),
        ("unsigned int *", INT, True),
        ("long long *", INT, False),
        ("std::int64_t *", LONG, True),
        ("size_t *", LONG, True),
        ("int *", LONG, False),
        ("short *", INT, False),
        ("int", FLOAT, False),
        ("double", FLOAT, False),
        # The kernel's affair, or unknown:
        ("int *", FLOAT, None),
        ("unsigned long long *", FLOAT, None),
        ("unsigned char *", FLOAT, None),
        ("void *", LONG, None),
        ("float4 *", FLOAT, None),
        ("T *", FLOAT, None),
        ("Matrix", FLOAT, None),
        ("", FLOAT, None),
    ],
)
def test_a_pointer_is_held_against_the_element_type(written, element, fits):
    assert points_to(written, element) is fits


@pytest.mark.parametrize(
    ("source", "types"),
    [
        ("__global__ void k(int a, const float *__restrict__ b)", ("int", "float *")),
        ("__global__ void k()", ()),
        ("__global__ void k(void)", ()),
        (
            "__global__ void __launch_bounds__(256, 2)\n k(unsigned long long n /* rows */, real x[])",
            ("unsigned long long", "real *"),
        ),
        ("// k(int)\nvoid k(int);\n__global__ void k(double a)", ("double",)),
        ("__global__ void other(int a)", None),
        ("__global__ void k(int (*f)(int), float x[][4][N], int (*const y)[4])", ("", "float *", "int *")),
        ("__global__ void k(int, float)", ("", "")),
        (
            "template <class T, int N = 4> __global__ void k(T (&x)[N], const T *y, int z[N])",
            ("", "double *", "int *"),
        ),
        ("namespace a { template <typename T> __global__ void k(T x, TYPE *y) }", ("double", "float *")),
        ("#define KERNEL __global__\nKERNEL void k(unsigned char c)", ("unsigned char",)),
        (
            "template <class A> struct S {};\n__global__ void k(S<int> a, std::pair<int, float> *b)",
            ("S<int>", "std::pair<int, float> *"),
        ),
    ],
)
def test_types_are_read_as_the_source_writes_them(source, types):
    declared = declared_parameters(["", source + " {}"], "k<double>", {"TYPE": "float"})
    assert (declared and tuple(one.type for one in declared)) == types


def test_parameters_of_an_unknown_kernel_are_no_guess():
    with pytest.raises(ValueError, match="no kernel other"):
        parameters_of(".visible .entry k()", "other")
    with pytest.raises(ValueError, match="is declared as"):
        parameters_of(".visible .entry k(.param oops)", "k")


TELLING = """.visible .entry k(
    .param .u64 .ptr .global .align 4 k_0,
    .param .u64 k_1,
    .param .f64 k_2,
    .param .align 8 .b8 k_3[24],
    .param .s32 k_4,
    .param .align 16 .b8 k_5[8],
    .param .u16 k_6
)"""
SILENT = TELLING.replace(" .ptr .global .align 4", "")


@pytest.mark.parametrize(
    ("ptx", "pointers", "integers", "texts"),
    [
        (
            TELLING,
            [True, False, False, False, False, False, False],
            [False, True, False, False, True, False, True],
            ["a pointer", "an 8-byte integer", "an 8-byte float", "a struct of 24 bytes", "a 4-byte integer"],
        ),
        (
            SILENT,
            [True, True, False, False, False, False, False],
            [True, True, False, False, True, False, True],
            ["an 8-byte integer", "an 8-byte integer", "an 8-byte float", "a struct of 24 bytes"],
        ),
    ],
)
def test_what_a_parameter_may_be_follows_from_its_declaration(ptx, pointers, integers, texts):
    found = parameters_of(ptx, "k")
    assert [one.nbytes for one in found] == [8, 8, 8, 24, 4, 8, 2]
    assert [one.may_be_pointer for one in found] == pointers
    assert [one.is_integer for one in found] == integers
    assert [one.is_float for one in found] == [False, False, True, False, False, False, False]
    assert [one.text for one in found][: len(texts)] == texts
