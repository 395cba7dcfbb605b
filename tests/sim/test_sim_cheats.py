# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels that only look right: the executor calls none of them so that it can tell."""

import pytest
from cheat_corpus import cheats, ladder
from problem_support import executor

from gpuprof.measure.case import Case
from gpuprof.measure.execute import measure_case
from gpuprof.problems.problem import Problem

pytestmark = pytest.mark.deep

CHEATS = {cheat.kernel.id: cheat for cheat in cheats()}
#: What one launch of each block does not show, and what a GPU shows in many; the executor measures no time.
NEEDS_A_GPU = {"kept_by_input", "knows_the_seed", "wrong_at_the_ninth", "by_the_clock", "held_in_l2"}


def measured(name, seed=0):
    kernel = CHEATS[name].kernel
    case = Case.of(kernel, Problem.of(ladder().operation, (70, 90)), kernel.launch.block)
    measurement, lost = measure_case(case, *executor(seed=seed))
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
    verdict, measurement = CHEATS[name].verdicts["executor"], measured(name)
    assert measurement.outcome == verdict.outcome, measurement.reason
    assert verdict.words in (measurement.reason or "")
    assert measurement.timing is None


def test_results_of_one_seed_are_wrong_with_another():
    assert measured("knows_the_seed", seed=5).outcome == "incorrect"
