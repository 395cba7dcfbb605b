# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The search by itself, on made-up times: it finds what is good in few evaluations, and repeats itself."""

import numpy as np
import pytest
from synthetic_times import Landscape, landscape

from gpuprof.devices.cards import load_card
from gpuprof.tuning.card_search import BATCH, FIRST_BATCH
from gpuprof.tuning.features import bounded, features_of, sketch, with_work
from gpuprof.tuning.search import Search, scaled
from gpuprof.tuning.surrogate import Prediction, expected_improvement, predict

BUDGET = 20


def found(made_up: Landscape, seed: int, *, counted: bool) -> tuple[float, list[int]]:
    """The share of the best time that a search reaches, and the points that it looked at."""
    device = load_card("h200")
    points = made_up.with_bounds(50) if counted else made_up.points
    features, guess = features_of(points, device), sketch(points, device)
    prior = bounded(points, features, guess)
    search = Search(with_work(points, features), prior, [0], seed, 0.25 if counted else 1.0)
    looked: list[int] = []
    while len(looked) < BUDGET:
        for index in search.propose(BATCH if looked else FIRST_BATCH):
            looked.append(index)
            search.tell(index, float(made_up.times_us[index]))
    assert search.best is not None
    return float(made_up.times_us.min() / made_up.times_us[search.best]), looked


def test_twenty_of_a_thousand_made_up_times_come_close_to_the_best():
    shares = []
    for seed in range(3):
        made_up = landscape(2048, seed)
        assert len(made_up.points) > 1000
        share, looked = found(made_up, seed, counted=True)
        assert len(set(looked)) == BUDGET
        shares.append(share)
    # One point in a hundred lies within 2 % of the best.
    assert min(shares) > 0.96
    assert np.median(shares) > 0.98


def test_the_same_seed_looks_at_the_same_points():
    made_up = landscape(1024, 1)
    assert found(made_up, 7, counted=False) == found(made_up, 7, counted=False)


def test_points_that_fail_are_not_proposed_again_and_teach_nothing():
    search = Search(np.arange(8.0)[:, None], np.zeros(8), [3])
    first = search.propose(1)
    assert first == [3]
    search.tell(3, None)
    assert search.best is None
    rest = []
    while proposed := search.propose(3):
        rest += proposed
        for index in proposed:
            search.tell(index, 1.0 + index)
    assert sorted(rest) == [0, 1, 2, 4, 5, 6, 7]
    assert search.best == 0


def test_what_was_told_is_what_is_expected():
    search = Search(np.arange(6.0)[:, None], np.zeros(6))
    search.tell(2, 5.0)
    search.tell(4, 9.0)
    expected = search.expected()
    assert expected[[2, 4]] == pytest.approx([5.0, 9.0])
    assert 4.0 < expected[3] < 10.0


def test_a_trend_is_carried_on():
    features = np.linspace(-1, 1, 21)[:, None]
    known = [4, 6, 8, 10]
    values = 3.0 + 2.0 * features[known, 0]
    prediction = predict(features, np.zeros(21), known, values)
    assert prediction.mean[0] < prediction.mean[4] < prediction.mean[12] < prediction.mean[20]
    assert prediction.deviation[20] > prediction.deviation[8]


def test_expected_improvement_against_its_integral():
    prediction = Prediction(np.array([1.0, 2.0, 5.0]), np.array([0.5, 1.5, 0.1]))
    draws = np.random.default_rng(0).standard_normal(400_000)
    by_hand = [
        np.maximum(1.8 - (mean + deviation * draws), 0).mean()
        for mean, deviation in zip(prediction.mean, prediction.deviation, strict=True)
    ]
    assert expected_improvement(prediction, 1.8) == pytest.approx(by_hand, rel=0.02, abs=1e-4)


def test_columns_that_say_nothing_are_left_out():
    features = scaled(np.array([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]]))
    assert features.shape == (3, 1)
    assert scaled(np.ones((4, 2))).shape == (4, 1)


def test_scales_are_weighed_by_all_of_many_values_and_few_are_kept_of_too_many():
    points = np.random.default_rng(3).standard_normal((900, 2))
    values = np.sin(points[:, 0]) + 0.2 * points[:, 1]
    for many in (5, 300, 800):
        known = list(range(many))
        left = predict(points, np.zeros(900), known, values[known]).mean[800:] - values[800:]
        assert np.abs(left).mean() < {5: 1.0, 300: 0.03, 800: 0.03}[many]


def test_seeds_begin_at_points_of_their_own_that_all_lie_apart():
    grid = np.array([[x, y] for x in np.linspace(-1, 1, 12) for y in np.linspace(-1, 1, 12)])
    begun = [Search(grid, np.zeros(len(grid)), [0], seed, 1.0).propose(6) for seed in range(5)]
    assert len({tuple(each) for each in begun}) > 1
    for chosen in begun:
        assert chosen[0] == 0
        assert len(set(chosen)) == 6
        # The last ones are no neighbours of those before them, which a step of 2 / 11 parts.
        gaps = [np.linalg.norm(grid[chosen[:place]] - grid[chosen[place]], axis=1).min() for place in (4, 5)]
        assert min(gaps) > 0.4
