# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The rank-sum test and its interval, against counting all orders."""

from itertools import combinations
from math import comb
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuprof.comparison.ranks import critical_count, fewest_each, shift


def inversions(n: int, m: int) -> list[int]:
    """How many pairs are the wrong way round, in each order of n and m values."""
    return [
        sum(1 for place in taken for other in range(n + m) if other not in taken and other < place)
        for taken in combinations(range(n + m), n)
    ]


@pytest.mark.parametrize(("n", "m"), [(2, 2), (3, 5), (5, 5), (4, 8), (1, 9)])
@pytest.mark.parametrize("alpha", [0.3, 0.1, 0.05, 0.01])
def test_as_many_differences_may_be_wrong_as_all_orders_allow(n, m, alpha):
    counts = inversions(n, m)
    allowed = critical_count(n, m, alpha)
    assert sum(count < allowed for count in counts) <= alpha / 2 * len(counts)
    assert sum(count <= allowed for count in counts) > alpha / 2 * len(counts)


@pytest.mark.parametrize(
    ("n", "alpha", "largest"), [(5, 0.05, 2), (8, 0.05, 13), (10, 0.05, 23), (10, 0.01, 16), (20, 0.05, 127)]
)
def test_agrees_with_the_published_tables(n, alpha, largest):
    """Critical values of Mann and Whitney's U, two-sided."""
    assert critical_count(n, n, alpha) - 1 == largest


def test_no_order_is_unlikely_enough_of_few_values():
    assert fewest_each(0.05) == 4
    assert critical_count(3, 3, 0.05) == 0
    assert shift([1, 2, 3], [10, 11, 12], 0.05).low is None
    assert 2 / comb(2 * fewest_each(0.0002), fewest_each(0.0002)) <= 0.0002


def test_many_values_are_as_good_as_normal():
    """Where counting ends and the normal distribution takes over there is no step."""
    counted, normal = critical_count(60, 60, 0.001), critical_count(60, 61, 0.001)
    assert 0 < normal - counted < 60


def test_the_estimate_is_the_median_of_all_differences():
    found = shift([1.0, 2.0, 4.0], [5.0, 9.0], 0.5)
    assert found.estimate == median(y - x for x in (1.0, 2.0, 4.0) for y in (5.0, 9.0))


@given(
    st.lists(st.integers(0, 9), min_size=4, max_size=6),
    st.lists(st.integers(0, 9), min_size=4, max_size=6),
)
def test_the_interval_leaves_out_nothing_exactly_where_the_test_rejects(base, new):
    found = shift(base, new, 0.1)
    not_above = sum(y <= x for x in base for y in new)
    assert found.low is not None
    assert (found.low > 0) == (not_above < critical_count(len(base), len(new), 0.1))
    assert found.low <= found.estimate <= found.high


@given(st.lists(st.floats(-5, 5), min_size=5, max_size=8), st.floats(-3, 3))
def test_moving_all_of_one_side_moves_the_interval_as_far(values, by):
    still, moved = shift(values, values, 0.2), shift(values, [value + by for value in values], 0.2)
    assert moved.low == pytest.approx(still.low + by, abs=1e-9)
    assert moved.high == pytest.approx(still.high + by, abs=1e-9)
