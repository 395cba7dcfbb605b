# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The device memory of an executed case: poison in what it writes, inputs as they are, nothing left over."""

from types import SimpleNamespace

import numpy as np
from problem_support import Gemm, Transpose

from gpuprof.backends.sim.device_memory import device_memory
from gpuprof.problems.problem import ArraySpec


def test_each_case_finds_poison_whatever_the_last_one_wrote():
    for problem in (Transpose(30, 20), Transpose(300, 200), Transpose(5, 3)):
        inputs = problem.inputs(0)
        for _ in range(2):
            _, buffers = device_memory(SimpleNamespace(problem=problem, workspace=()), inputs, None)
            out = buffers["out"].array()
            assert np.isnan(out).all()
            assert len(out) == inputs["in"].size
            out[:] = 1.0


def test_inputs_stay_as_they_were():
    problem = Transpose(32, 8)
    inputs = problem.inputs(0)
    before = inputs["in"].copy()
    _, buffers = device_memory(SimpleNamespace(problem=problem, workspace=()), inputs, None)
    buffers["in"].store(np.arange(8), np.zeros(8, np.uint32), 4)
    assert not buffers["in"].array()[:8].any()
    assert np.array_equal(inputs["in"], before)


def test_what_is_read_and_written_is_the_cases_own():
    problem = Gemm(8, 8, 8, beta=1.0)
    inputs = problem.inputs(0)
    before = inputs["C"].copy()
    _, buffers = device_memory(SimpleNamespace(problem=problem, workspace=()), inputs, None)
    buffers["C"].store(np.arange(8), np.zeros(8, np.uint32), 4)
    assert np.array_equal(inputs["C"], before)


def test_workspace_without_bytes():
    problem = Transpose(4, 4)
    rest = ArraySpec("rest", (0,), "i32", "out")
    case = SimpleNamespace(problem=problem, workspace=(rest,))
    _, buffers = device_memory(case, problem.inputs(0), None)
    assert buffers["rest"].array().shape == (0,)
