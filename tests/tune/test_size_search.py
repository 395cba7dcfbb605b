# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a search expects: guesses corrected by known points, the order of one size, spaces that were timed."""

import sys
from pathlib import Path

import numpy as np
import pytest
from synthetic_times import TILES, landscape

from gpuprof import signals
from gpuprof.devices.cards import load_card
from gpuprof.kernels.catalog import load_kernels
from gpuprof.measure.request import Selection
from gpuprof.problems.problem import Problem
from gpuprof.records import replace
from gpuprof.results import Bound, Model
from gpuprof.tuning.card_search import _COOPERATIVE, SizeSearch, corrected, features_of
from gpuprof.tuning.space import make_space


def begun(*, timed):
    """A search at one size, and what is built of its points."""
    file = load_kernels(TILES)
    problem = Problem.of(file.operation, (512, 512, 512), "f32", {}, {})
    space = make_space([Selection(file.kernels[0])], named=True)
    search = SizeSearch(space, problem, load_card("h200"), 0, timed=timed)
    return search, {one.candidate.point: one.measurement for one in landscape(512, 3).points}


def built_up(search, built, step=1):
    """Begin a search that was told what is built of its points, forwards or backwards."""
    for candidate in search.candidates[::step]:
        if candidate.point in built:
            search.built(candidate, built[candidate.point])
    search.begin(0)


def test_ctrl_c_ends_it_while_points_are_looked_through(monkeypatch):
    monkeypatch.setattr(signals._requests, "count", 1)
    with pytest.raises(KeyboardInterrupt):
        begun(timed=False)


def searched(reverse):
    """What a search finds whose points all have one bound, built and counted forwards or backwards."""
    search, built = begun(timed=False)
    built_up(search, built, -1 if reverse else 1)
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
    built_up(search, built)
    for one in search.to_count(len(counted)):
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
    built_up(search, counted)
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


def test_what_is_known_is_what_is_expected_and_a_trend_is_carried_on():
    features = np.linspace(-1, 1, 21)[:, None]
    times = [None] * 21
    for index in (4, 6, 8, 10):
        times[index] = float(np.exp(3.0 + 2.0 * features[index, 0]))
    expected = np.exp(corrected(features, np.zeros(21), times))
    assert expected[[4, 10]] == pytest.approx([times[4], times[10]])
    assert expected[0] < expected[4] < expected[12] < expected[20]


def test_guesses_hold_until_something_is_known_and_keep_their_order_after_one_point():
    guesses = np.array([3.0, 1.0, 2.0])
    features = np.array([[1.0], [-1.0], [0.0]])
    assert (corrected(features, guesses, [None] * 3) == guesses).all()
    assert corrected(features, guesses, [None, np.exp(5.0), None]) == pytest.approx([7.0, 5.0, 6.0])


def test_features_that_add_up_are_learnt_from_few_points():
    # Eight features of two values: 24 of 256 points tell what each does.
    grid = np.array(np.meshgrid(*[[-1.0, 1.0]] * 8)).reshape(8, -1).T
    values = grid @ np.array([0.4, -0.3, 0.2, 0.1, 0.05, -0.05, 0.02, 0.0])
    known = {*np.random.default_rng(1).permutation(len(grid))[:24].tolist()}
    times = [float(np.exp(value)) if index in known else None for index, value in enumerate(values)]
    assert np.abs(corrected(grid, np.zeros(len(grid)), times) - values).max() < 0.1


def test_every_feature_is_brought_to_one_scale_and_one_that_says_nothing_is_left_out():
    device, points = load_card("h200"), landscape(1024, 0).points
    features = features_of(points, device)
    assert np.isfinite(features).all()
    assert features.mean(axis=0) == pytest.approx(np.zeros(features.shape[1]), abs=1e-9)
    assert features.std(axis=0) == pytest.approx(np.ones(features.shape[1]))
    assert features_of(points[:1], device).shape == (1, 0)
    assert corrected(features_of(points[:2], device)[:, :0], np.zeros(2), [2.0, None]).tolist() == (
        pytest.approx([np.log(2.0)] * 2)
    )


BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
#: The least of two seeds that is asked; of 20 random points the median is 0.98, 0.87 and 0.95.
#: By sums alone the second seed never counts GEMM's best point.
LEAST = 0.98


@pytest.mark.deep
@pytest.mark.parametrize("space", ["softmax", "gemm", "transpose"])
def test_few_timings_come_close_to_the_best_of_a_thousand_recorded_points(space, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from tune_strategies import own
    from tune_table import read_table

    table = read_table(BENCHMARKS / "tuning" / "h200" / f"{space}.json.xz")
    assert len(table.points) > 1000
    for seed in (0, 4):
        trace = own(table, 20, seed)
        assert len(trace) == 20
        assert table.best_us / min(trace) >= LEAST
    for name in ("tune_strategies", "tune_table"):
        sys.modules.pop(name)
