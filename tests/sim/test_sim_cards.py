# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The executor as a backend: the PTX of each card, memory of a case, programs that are kept, types."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from problem_support import Gemm, Transpose, executor, find_kernel
from typer.testing import CliRunner

import gpuprof
from gpuprof.backends.sim import instructions as programs
from gpuprof.backends.sim.backend import SimBackend
from gpuprof.backends.sim.launching import device_memory
from gpuprof.cli import app
from gpuprof.devices.cards import load_card
from gpuprof.measure.case import Case
from gpuprof.measure.execute import Compiler, measure_case
from gpuprof.problems.dtypes import RUN_TYPES
from gpuprof.problems.problem import ArraySpec
from gpuprof.reading import read_run


@pytest.mark.parametrize(
    ("card", "compiled", "executed"),
    [
        ("t4", "sm_75", "sm_75"),
        ("rtx4090", "sm_89", "sm_89"),
        ("h200", "sm_90", "sm_90"),
        ("b200", "sm_100", "sm_90"),
        ("rtx5090", "sm_120", "sm_90"),
    ],
)
def test_card_compiles_for_itself_and_executes_what_is_known(monkeypatch, card, compiled, executed):
    targets = []

    def load(ptx, entry, **options):
        targets.append(re.search(r"\.target (\w+)", ptx)[1])
        return load_program(ptx, entry, **options)

    load_program = programs.load_program
    monkeypatch.setattr(programs, "load_program", load)
    backend = SimBackend(load_card(card), models=False)
    assert backend.device.arch == compiled
    assert backend.environment == {"executed_ptx": executed}
    case = Case.of(find_kernel("transpose", "naive_col"), Transpose(64, 32))
    measurement, _ = measure_case(case, backend, Compiler(backend.device.arch))
    assert measurement.outcome == "ok", measurement.reason
    assert targets == [executed]


@pytest.mark.parametrize("size", [128, 300])
def test_the_shipped_bulk_transpose(size, tmp_path):
    arguments = f"transpose --kernel bulk_tile --device sim:h200 --sizes {size} --quiet -o"
    result = CliRunner().invoke(app, [*arguments.split(), str(tmp_path)])
    assert result.exit_code == 0, result.output
    (case,) = read_run(tmp_path / "results.json").cases
    assert case.outcome == "ok"
    assert case.verification.checked_elements == size * size
    loads, stores = (case.counters[f"global_{kind}_requests"] for kind in ("load", "store"))
    assert (loads.value, loads.reason) == (None, "no counter sees what the kernel's bulk copies move")
    assert stores.value > 0


@pytest.mark.parametrize(("nx", "ny", "dtype"), [(100, 133, "f32"), (101, 70, "f64")])
def test_ragged_transposes_of_large_matrices(nx, ny, dtype):
    case = Case.of(
        find_kernel("transpose", "smem_sectors"), Transpose(nx, ny, dtype), None, {"BYTES": 16, "SHARING": 2}
    )
    measurement, _ = measure_case(case, *executor("h200"))
    assert measurement.outcome == "ok", measurement.reason


def test_each_case_finds_poison_whatever_the_last_one_wrote():
    for problem in (Transpose(30, 20), Transpose(300, 200), Transpose(5, 3)):
        inputs = problem.inputs(0)
        for _ in range(2):
            _, buffers = device_memory(SimpleNamespace(problem=problem, workspace=()), inputs, None)
            out = buffers["out"].array()
            assert np.isnan(out).all()
            assert len(out) == inputs["in"].size
            out[:] = 1.0


@pytest.mark.parametrize(("problem", "name"), [(Transpose(32, 8), "in"), (Gemm(8, 8, 8, beta=1.0), "C")])
def test_inputs_stay_as_they_were(problem, name):
    inputs = problem.inputs(0)
    before = inputs[name].copy()
    _, buffers = device_memory(SimpleNamespace(problem=problem, workspace=()), inputs, None)
    buffers[name].store(np.arange(8), np.zeros(8, np.uint32), 4)
    assert not buffers[name].array()[:8].any()
    assert np.array_equal(inputs[name], before)


def test_workspace_without_bytes():
    problem = Transpose(4, 4)
    rest = ArraySpec("rest", (0,), "i32", "out")
    case = SimpleNamespace(problem=problem, workspace=(rest,))
    _, buffers = device_memory(case, problem.inputs(0), None)
    assert buffers["rest"].array().shape == (0,)


@pytest.mark.parametrize("dtype", ["i8", "u16", "i32", "u32", "i64"])
def test_workspace_of_integers_holds_no_mark_of_a_free_place(dtype):
    problem = Transpose(4, 4)
    case = SimpleNamespace(problem=problem, workspace=(ArraySpec("slots", (3,), dtype, "out"),))
    _, buffers = device_memory(case, problem.inputs(0), None)
    held = buffers["slots"].array()
    assert not np.isin(held, [0, np.iinfo(held.dtype).max, np.array(-1).astype(held.dtype)]).any()
    assert np.isnan(buffers["out"].array()).all()


@pytest.fixture
def decoded(monkeypatch):
    """What is decoded, in order; a program is the text that it came from."""
    seen = []

    def load(ptx, entry, *, observer, where_unwritten=False):
        observer = None if where_unwritten else observer
        seen.append((ptx, entry, observer is not None))
        return SimpleNamespace(interface=SimpleNamespace(module=ptx), observer=observer)

    monkeypatch.setattr(programs, "load_program", load)
    monkeypatch.setattr(programs, "_KEPT_CHARACTERS", 10)
    return seen


def test_a_text_is_decoded_once_for_each_kernel_and_each_way(decoded):
    kept = programs.DecodedKernels(load_card("h200"))
    for _ in range(2):
        for entry, follow in (("a", False), ("b", False), ("a", True)):
            assert kept.program("ptx", entry, follow_undefined=follow).interface.module == "ptx"
    assert decoded == [("ptx", "a", False), ("ptx", "b", False), ("ptx", "a", True)]


def test_all_are_forgotten_where_they_are_too_many(decoded):
    kept = programs.DecodedKernels(load_card("h200"))
    for text in ("first", "other", "first", "third", "third", "first"):
        kept.program(text, "k", follow_undefined=False)
    assert [text for text, *_ in decoded] == ["first", "other", "third", "first"]


def test_a_text_that_is_longer_than_all_that_is_kept_is_still_loaded(decoded):
    kept = programs.DecodedKernels(load_card("h200"))
    for _ in range(2):
        assert kept.program("a long text of PTX", "k", follow_undefined=False)
    assert len(decoded) == 1


DOT = """/*gpuprof
title = "One thread per element"
problem = "gemm"
dtypes = ["{dtype}"]
layout = "tn"
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]
[launch]
block = [16, 16]
grid = ["cdiv(N, 16)", "cdiv(M, 16)"]
*/
#include <cuda_bf16.h>
extern "C" __global__ void dot(int M, int N, int K, {sums} alpha, const real *A, const real *B,
                               {sums} beta, {result} *C)
{{
    const int col = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    if (row >= M || col >= N)
        return;
    {sums} sum = 0;
    for (int k = 0; k < K - {left_out}; ++k)
        sum += ({sums})A[row * K + k] * ({sums})B[col * K + k];
    {result} *c = C + row * N + col;
    *c = ({result})(beta == 0 ? alpha * sum : alpha * sum + beta * ({sums})*c);
}}
"""


@pytest.mark.parametrize("dtype", RUN_TYPES)
def test_product_in_each_type(dtype, tmp_path):
    words = {"sums": "double" if dtype == "f64" else "float", "dtype": dtype}
    words["result"] = "__nv_bfloat16" if dtype == "e4m3" else "real"
    for left_out, outcome in ((0, "ok"), (8, "incorrect")):
        file = tmp_path / f"dot_{left_out}.cu"
        file.write_text(DOT.format(left_out=left_out, **words).replace("void dot(", f"void dot_{left_out}("))
        run = gpuprof.profile(
            "gemm",
            kernels=[file],
            sizes=[(33, 47, 300)],
            dtype=dtype,
            scalars={"alpha": 0.3, "beta": -0.7},
            device="sim",
            explain=False,
        )
        assert [case.outcome for case in run.cases] == [outcome]


def test_inputs_are_drawn_once_for_all_storage_orders_of_a_problem():
    backend, before = SimBackend(load_card("h200")), None
    rows, columns = Gemm(40, 24, 16), Gemm(40, 24, 16, layout="col")
    for problem in (
        rows,
        columns,
        Gemm(40, 24, 16, beta=0.5),
        Gemm(24, 40, 16),
        Gemm(24, 40, 16, dtype="f64"),
    ):
        found, drawn = backend.references_of(problem).inputs, problem.inputs(seed=0)
        assert found.keys() == drawn.keys()
        assert all(np.array_equal(found[name], drawn[name]) for name in drawn)
        assert (found is before) == (problem is columns)
        before = found


@pytest.mark.parametrize("first", [False, True, None])
def test_what_may_read_a_register_before_its_first_write_is_decoded_once_to_be_followed(monkeypatch, first):
    decoded, load = [], programs.load_program

    def counted(*arguments, **named):
        decoded.append(load(*arguments, **named))
        return decoded[-1]

    monkeypatch.setattr(programs, "load_program", counted)
    kept = programs.DecodedKernels(load_card("h200"))
    head = ".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k()\n{.reg .b32 %r<2>;\n"
    for before, follows in (("mov.b32 %r1, 0;\n", False), ("", True)):
        ptx = f"{head}{before}add.s32 %r1, %r1, 1;\nret;\n}}"
        decoded.clear()
        if first is not None:
            assert (kept.program(ptx, "k", follow_undefined=first).observer is not None) is first
        for _ in range(2):
            assert (kept.program(ptx, "k", follow_undefined=None).observer is not None) is follows
        assert kept.program(ptx, "k", follow_undefined=follows) is decoded[0]
        assert len(decoded) == 1 + (first not in (None, follows))
