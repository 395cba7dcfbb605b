# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What executed blocks wrote, held against references: all of it, or what a sample of the blocks wrote."""

import numpy as np
import pytest
from problem_support import Gemm

from gpuprof.backends.sim.sim_references import References
from gpuprof.executor import GlobalMemory
from gpuprof.problems.problem import Problem

PROBLEM = Gemm(6, 7, 5)
INPUTS = PROBLEM.inputs(seed=1)
RIGHT = PROBLEM.reference(INPUTS)["C"].values.astype(np.float32)


@pytest.fixture
def asked(monkeypatch):
    """The names of the references that a problem was asked for, in order."""
    names = []

    def recorded(name):
        original = getattr(Problem, name)

        def call(self, *arguments):
            names.append(name)
            return original(self, *arguments)

        return call

    for name in ("reference", "reference_at"):
        monkeypatch.setattr(Problem, name, recorded(name))
    return names


def left(values, written=slice(None), start=None):
    """Device memory after a launch that wrote these elements."""
    buffer = GlobalMemory().allocate(np.zeros(42, np.float32) if start is None else start, "C")
    indices = np.arange(42)[written]
    buffer.store(indices, values[indices].view(np.uint32), 4)
    return {"C": buffer}


def test_references_of_all_elements_are_computed_once_and_serve_samples_too(asked):
    references = References(PROBLEM, INPUTS)
    assert asked == []
    for _ in range(2):
        found = references.verify(left(RIGHT), whole=True)
        assert (found.checked_elements, found.wrong_elements) == (42, 0)
    found = references.verify(left(RIGHT, slice(3, 9)), whole=False)
    assert (found.checked_elements, found.wrong_elements) == (6, 0)
    assert asked == ["reference"]


def test_references_of_a_sample_are_those_of_its_elements(asked):
    references = References(PROBLEM, INPUTS)
    found = references.verify(left(RIGHT, slice(3, 9)), whole=False)
    assert (found.checked_elements, found.wrong_elements, found.detail) == (6, 0, "")
    wrong = RIGHT.copy()
    wrong[4] += 1
    found = references.verify(left(wrong, slice(3, 9)), whole=False)
    assert (found.checked_elements, found.wrong_elements) == (6, 1)
    assert found.detail
    assert asked == ["reference_at"]
    references.verify(left(RIGHT, slice(4, 9)), whole=False)
    assert asked == ["reference_at"] * 2


def test_sample_that_wrote_nothing_says_so():
    found = References(PROBLEM, INPUTS).verify(left(RIGHT, slice(0, 0)), whole=False)
    assert (found.checked_elements, found.max_rel_error) == (0, None)
    assert found.detail == "the sampled blocks wrote nothing to C"


def test_what_nobody_wrote_is_wrong_though_it_is_right_by_chance():
    found = References(PROBLEM, INPUTS).verify(left(RIGHT, slice(0, 40), start=RIGHT), whole=True)
    assert (found.checked_elements, found.wrong_elements) == (42, 2)
    assert "never written" in found.detail


def test_output_that_a_kernel_adds_to_may_stay_as_it_was():
    problem = Gemm(6, 7, 5, beta=1.0)
    inputs = problem.inputs(seed=1)
    right = problem.reference(inputs)["C"].values.astype(np.float32)
    found = References(problem, inputs).verify(left(right, slice(0, 40), start=right), whole=True)
    assert (found.checked_elements, found.wrong_elements) == (42, 0)
