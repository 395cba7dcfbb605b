# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A search at one size: the order in which cores and cards end tells nothing."""

from dataclasses import replace

from synthetic_times import TILES, landscape

from gpuprof.devices.cards import load_card
from gpuprof.kernels.catalog import load_kernels
from gpuprof.measure.request import Selection
from gpuprof.problems.problem import Problem
from gpuprof.results import Bound, Model
from gpuprof.tuning.size_search import _COOPERATIVE, SizeSearch
from gpuprof.tuning.space import Wanted, make_space


def begun(*, timed):
    """A search at one size, and what is built of its points."""
    file = load_kernels(TILES)
    problem = Problem.of(file.operation, (512, 512, 512), "f32", {}, {})
    space = make_space([Selection(file.kernels[0])], Wanted(), named=True)
    search = SizeSearch(space, problem, load_card("h200"), 0, timed=timed)
    return search, {one.candidate.point: one.measurement for one in landscape(512, 3).points}


def searched(reverse):
    """What a search finds whose points all have one bound, built and counted forwards or backwards."""
    search, built = begun(timed=False)
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


def test_a_search_begins_with_the_least_modelled_times_and_without_a_card_they_decide():
    search, built = begun(timed=False)
    counted = {one.candidate.point: one.measurement for one in landscape(512, 3).counted()}
    for candidate in search.candidates:
        if candidate.point in built:
            search.built(candidate, built[candidate.point])
    search.begin(0)
    for asked in (search.to_count(24), search.rest_to_count()):
        for one in asked:
            search.counted(one.candidate.point, counted[one.candidate.point])
        search.rank()
    least = sorted(counted, key=lambda point: counted[point].model.median_us)
    cases = {id(candidate.case): candidate.point for candidate in search.candidates}
    asked = [cases[id(case)] for case in search.next_cases(6, 6)]
    assert asked[1:] == [point for point in least if point != asked[0]][:5]  # the header's own comes first
    for number, point in enumerate(asked):
        us = 100.0 * 1.2**number
        search.tell(point, replace(counted[point], model=Model(us, 0.85 * us, 1.3 * us)))
    found = search.record()
    assert found.by == "model"
    # Within the factor of 1.3 that the model may err by above: too near to tell.
    assert [point.params for point in found.ties] == [dict(point.params) for point in asked[:2]]


def test_a_modelled_time_stands_beside_a_measured_one():
    search, built = begun(timed=True)
    counted = {one.candidate.point: one.measurement for one in landscape(512, 3).counted()}
    for candidate in search.candidates:
        if candidate.point in built:
            search.built(candidate, counted[candidate.point])
    search.begin(0)
    point = next(iter(counted))
    search.tell(point, replace(built[point], outcome="ok"))
    assert search.measured[point].model == counted[point].model is not None
    search.tell(point, replace(built[point], outcome="incorrect"))
    assert search.measured[point].model is None


def test_a_cooperative_grid_that_does_not_fit_at_once_is_ruled_out():
    search, built = begun(timed=True)
    resident = {point: one.occupancy.blocks_per_sm for point, one in built.items()}
    assert len({*resident.values()}) > 1
    grid = (load_card("h200").sm_count * max(resident.values()), 1, 1)
    for candidate in search.candidates:
        if candidate.point in built:
            launch = replace(candidate.configured.largest, cooperative=True, grid=grid)
            configured = replace(candidate.configured, launches=(launch,))
            search.built(replace(candidate, configured=configured), built[candidate.point])
    search.begin(0)
    too_few = sum(blocks < max(resident.values()) for blocks in resident.values())
    assert search.record().ruled_out[_COOPERATIVE] == too_few > 0
