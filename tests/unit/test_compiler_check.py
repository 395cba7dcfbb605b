# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Whether the kernel or its compiler is wrong, with a card that runs PTX in the place of machine code."""

from dataclasses import replace

import numpy as np
import pytest

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

SOURCE = """/*gpuprof
operation = "sums"
dimensions = ["n"]
arguments = ["y", "x", "n"]
[arrays]
x = { shape = ["n"] }
y = { shape = ["n"], role = "out" }
[work]
bytes = "8 * n"
[check]
y = { value = "x * x + x", relative = "4 * u", absolute = "4 * u" }
[launch]
block = [64]
grid = ["cdiv(n, block_x)"]
*/
extern "C" __global__ void sums(float *y, const float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] * x[i] + x[i];
}
"""
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
    assert said[0].endswith("which line 19 stores")
    assert said[1].endswith("by 1: NVRTC")


COMPACTED = """/*gpuprof
operation = "compacted"
dimensions = ["n"]
arguments = ["y", "count", "x", "n"]
[arrays]
x = { shape = ["n"] }
y = { shape = ["n"], role = "inout" }
count = { shape = ["1"], dtype = "i32", role = "inout" }
[inputs]
y = "zeros"
count = "zeros"
[work]
bytes = "8 * n"
[check]
y = { value = "x[x > 0]", equal = true, unordered = true }
count = { value = "count + sum(x > 0)", equal = true }
[launch]
block = [64]
grid = ["cdiv(n, block_x)"]
*/
extern "C" __global__ void sums(float *y, int *count, const float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > 0)
        y[atomicAdd(count, 1)] = x[i];
}
"""


def test_outputs_without_an_order_are_compared_in_ascending_order():
    assert remarks(changed("st.global", "st.global"), COMPACTED)[0].endswith("by 2: NVRTC and the driver")
    said = remarks(changed("setp.leu.f32", "setp.geu.f32"), COMPACTED)[0]
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


def test_a_large_case_is_checked_at_a_size_like_it():
    assert "checked at 4194304, by 2" in remarks(changed("fma", "fma"), size=1 << 28)[0]
