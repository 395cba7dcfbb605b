# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A search at one size: the order in which cores and cards end tells nothing."""

from dataclasses import replace

from synthetic_times import TILES, landscape

from gpuprof.devices.cards import load_card
from gpuprof.kernels.catalog import load_kernels
from gpuprof.measure.request import Selection
from gpuprof.problems.problem import Problem
from gpuprof.results import Bound
from gpuprof.tuning.size_search import SizeSearch
from gpuprof.tuning.space import Wanted, make_space


def searched(reverse):
    """What a search finds whose points all have one bound, built and counted forwards or backwards."""
    file = load_kernels(TILES)
    problem = Problem.of(file.operation, (512, 512, 512), "f32", {}, {})
    space = make_space([Selection(file.kernels[0])], Wanted(), named=True)
    search = SizeSearch(space, problem, load_card("h200"), 0, timed=False)
    built = {one.candidate.point: one.measurement for one in landscape(512, 3).points}
    for candidate in search.candidates[::-1] if reverse else search.candidates:
        if candidate.point in built:
            search.built(candidate, built[candidate.point])
    search.begin(0)
    asked = search.next_cases(6, 6)
    points = {id(candidate.case): candidate.point for candidate in search.candidates}
    alike = {"bounds": {"issue": Bound(10.0, "made up", "made up")}, "bound_by": "issue", "outcome": "ok"}
    for case in asked[::-1] if reverse else asked:
        search.tell(points[id(case)], replace(built[points[id(case)]], **alike))
    return asked, search.cases(), search.record()


def test_the_order_in_which_compilers_and_cards_end_changes_nothing():
    assert searched(reverse=True) == searched(reverse=False)
