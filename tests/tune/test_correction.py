# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a search expects of points: its guesses, corrected by the points that are known."""

import numpy as np
import pytest
from synthetic_times import landscape

from gpuprof.devices.cards import load_card
from gpuprof.tuning.size_search import corrected, features_of


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
