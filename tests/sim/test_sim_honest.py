# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Honest kernels with odd habits: memory of their own, outputs that they look at. None is refused for it."""

from pathlib import Path

import pytest
from problem_support import measured, shipped_kernels

from gpuprof.backends.sim import backend
from gpuprof.kernels.catalog import load_ladder
from gpuprof.problems.problem import Problem

pytestmark = pytest.mark.deep

TESTS = Path(__file__).parents[1]
LADDER = load_ladder(TESTS / "honest")
KERNELS = {kernel.id: kernel for kernel in LADDER.kernels}
#: Some that may know of an earlier launch, and some that cannot: the first are launched twice.
MAY_KNOW = {
    "counter_goes_on",
    "counter_sets_itself_back",
    "table",
    "alternates",
    "two_passes",
    "last_block_adds",
}
CANNOT_KNOW = {"plain", "prints", "atomics"}


@pytest.mark.parametrize("name", KERNELS)
def test_odd_kernel_is_right(name, monkeypatch):
    again, asked = backend.verify_again, []

    def watched(problem, executed, seed):
        asked.append(seed)
        return again(problem, executed, seed)

    monkeypatch.setattr(backend, "verify_again", watched)
    measurement = measured(KERNELS[name], Problem.of(LADDER.operation, (6, 200)))
    assert measurement.outcome == "ok", measurement.reason
    if name in MAY_KNOW | CANNOT_KNOW:
        assert asked == [1] * (name in MAY_KNOW)


def test_a_hundred_honest_kernels_are_measured_by_some_test():
    """The ladders by test_sim_ladders and others, the samples by test_samples_own, the odd ones here."""
    samples = list((TESTS.parent / "samples" / "own").rglob("*.cu"))
    assert len(shipped_kernels()) + len(samples) + len(KERNELS) >= 100
