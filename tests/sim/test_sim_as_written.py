# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels as people write them, host code and all: compiled, executed, and right."""

import shutil

import pytest
from cuda_sources import FOLDER
from problem_support import measured

from gpuprof.backends.compiling import compile_kernel
from gpuprof.backends.sim.backend import SimBackend
from gpuprof.devices.cards import load_card
from gpuprof.kernels.catalog import load_kernels
from gpuprof.kernels.shape import configure
from gpuprof.problems.problem import Problem

pytestmark = pytest.mark.deep

WRITTEN = FOLDER / "as_written"


def measure(kernel, problem, params=None):
    return measured(kernel, problem, None, params)


@pytest.fixture(scope="module")
def sgemm():
    return load_kernels(WRITTEN / "sgemm.cu")


@pytest.mark.parametrize("beta", [0.0, 0.5])
@pytest.mark.parametrize("which", range(4))
def test_kernels_of_one_file_with_its_host_code(sgemm, which, beta):
    kernel = sgemm.kernels[which]
    for dtype in kernel.dtypes:
        problem = Problem.of(sgemm.operation, (70, 45, 33), dtype, {"alpha": 1.5, "beta": beta})
        measurement = measure(kernel, problem)
        assert measurement.outcome == "ok", measurement.reason
        assert measurement.verification.checked_elements == 70 * 45


def test_parameters_choose_the_instance(sgemm):
    problem = Problem.of(sgemm.operation, (64, 64, 16))
    shared = [
        measure(sgemm.kernels[0], problem, params).resources.static_shared_bytes
        for params in ({}, {"BK": 16}, {"BM": 64, "TM": 8})
    ]
    assert shared == [4 * (32 * 8 + 8 * 64), 4 * (32 * 16 + 16 * 64), 4 * (64 * 8 + 8 * 64)]


def test_assertion_that_fails_is_a_fault_of_its_line_and_of_the_entry(sgemm):
    measurement = measure(sgemm.kernels[0], Problem.of(sgemm.operation, (64, 64, 16)), {"TM": 2})
    source = sgemm.kernels[0].source
    line = source[: source.index("assert(")].count("\n") + 1
    assert measurement.outcome == "failed"
    assert measurement.reason.startswith(f"sgemm_tiled<32, 64, 8, 2, 8>, line {line}: thread (0, 0, 0)")
    assert "fails the assertion" in measurement.reason


@pytest.mark.parametrize("name", ["cooperative", "clustered"])
def test_cooperative_groups(name):
    file = load_kernels(WRITTEN / f"{name}.cu")
    measurement = measure(file.kernels[0], Problem.of(file.operation, (1024,)))
    assert measurement.outcome == "ok", measurement.reason


def test_counts_of_an_included_function_stand_at_the_line_that_calls_it():
    file = load_kernels(WRITTEN / "included.cu")
    measurement = measure(file.kernels[0], Problem.of(file.operation, (1024,)))
    assert measurement.outcome == "ok", measurement.reason
    source = file.kernels[0].source
    call = source[: source.index("lib::block_sum")].count("\n") + 1
    shared = {line.line for line in measurement.lines if "shared_load_wavefronts" in line.counters}
    assert shared == {call}


def test_kernel_in_an_included_file_has_no_lines_of_the_file_that_names_it(tmp_path):
    shutil.copytree(WRITTEN / "lib", tmp_path / "lib")
    header, end, body = (WRITTEN / "included.cu").read_text().partition("*/\n")
    (tmp_path / "kernel.cuh").write_text("\n" * 90 + body)
    (tmp_path / "block_sum.cu").write_text(f'{header}{end}#include "kernel.cuh"\n')
    file = load_kernels(tmp_path / "block_sum.cu")
    measurement = measure(file.kernels[0], Problem.of(file.operation, (1024,)))
    assert measurement.outcome == "ok", measurement.reason
    assert measurement.lines is None
    assert measurement.lines_reason.startswith("the kernel stands in an included file")
    kernel, backend = file.kernels[0], SimBackend(load_card("h200"))
    case = configure(kernel, Problem.of(file.operation, (1024,)), kernel.launch.block, {}, backend.device)
    model, reason = backend.count(case, compile_kernel(case, backend.compile_arch)).model()
    assert model, reason
    assert model.lines == ()
    assert model.reasons["latency"] > 0
