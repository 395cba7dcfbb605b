# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels with odd habits: those that only look right are not called right, and no honest one is refused."""

from pathlib import Path

import pytest
from cheat_corpus import cheats, ladder
from problem_support import executor, measured, shipped_kernels

from gpuprof.backends.sim import backend
from gpuprof.kernels.catalog import load_ladder
from gpuprof.measure.case import Case
from gpuprof.measure.execute import measure_case
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

    def watched(problem, executed, seed, **how):
        asked.append(seed)
        return again(problem, executed, seed, **how)

    monkeypatch.setattr(backend, "verify_again", watched)
    measurement = measured(KERNELS[name], Problem.of(LADDER.operation, (6, 200)))
    assert measurement.outcome == "ok", measurement.reason
    if name in MAY_KNOW | CANNOT_KNOW:
        assert asked == [1] * (name in MAY_KNOW)


def test_a_hundred_honest_kernels_are_measured_by_some_test():
    """The ladders by test_sim_ladders and others, the samples by test_samples_own, the odd ones here."""
    samples = list((TESTS.parent / "samples" / "own").rglob("*.cu"))
    assert len(shipped_kernels()) + len(samples) + len(KERNELS) >= 100


CHEATS = {cheat.kernel.id: cheat for cheat in cheats()}
#: What one launch of each block does not show, and what a GPU shows in many; the executor measures no time.
NEEDS_A_GPU = {"kept_by_input", "knows_the_seed", "wrong_at_the_ninth", "by_the_clock", "held_in_l2"}


def measured_cheat(name, seed=0, blocks=None):
    kernel = CHEATS[name].kernel
    case = Case.of(kernel, Problem.of(ladder().operation, (70, 90)), kernel.launch.block)
    measurement, lost = measure_case(case, *executor(blocks=blocks, seed=seed))
    assert not lost
    return measurement


def test_every_cheat_says_what_both_backends_make_of_it():
    assert len(CHEATS) >= 25
    for name, cheat in CHEATS.items():
        assert cheat.verdicts.keys() == {"executor", "gpu"}, name
        assert cheat.verdicts["gpu"].outcome in ("incorrect", "refused", "honest"), name
    assert {n for n, cheat in CHEATS.items() if cheat.verdicts["executor"].outcome == "ok"} == NEEDS_A_GPU


@pytest.mark.parametrize("name", CHEATS)
def test_cheat_gets_its_verdict(name):
    verdict, measurement = CHEATS[name].verdicts["executor"], measured_cheat(name)
    assert measurement.outcome == verdict.outcome, measurement.reason
    assert verdict.words in (measurement.reason or "")
    assert measurement.timing is None


@pytest.mark.parametrize("name", ["kept_result", "kept_on_the_heap"])
def test_a_sample_of_blocks_is_launched_again_where_a_kernel_may_keep_results(name):
    measurement = measured_cheat(name, blocks=4)
    assert measurement.outcome == "incorrect"
    assert measurement.verification.checked_elements < 70 * 90
    assert measurement.reason.startswith("Right in its first launch, wrong in a later one: with other inputs")
    kept = "; all that it wrote is its result of the launch before, which it keeps in its module's memory."
    assert measurement.reason.endswith(kept)


@pytest.mark.parametrize("name", sorted(KERNELS.keys() - {"two_passes"}))
def test_a_sample_of_an_odd_kernel_is_right(name):
    measurement = measured(KERNELS[name], Problem.of(LADDER.operation, (60, 200)), blocks=4)
    assert measurement.outcome == "ok", measurement.reason


def test_results_of_one_seed_are_wrong_with_another():
    assert measured_cheat("knows_the_seed", seed=5).outcome == "incorrect"
