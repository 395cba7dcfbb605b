# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Percentiles, the median's interval, and when sampling stops."""

import math
import random
import statistics

import numpy as np
import pytest
from each import each
from hypothesis import given
from hypothesis import strategies as st

from gpuprof.statistics import SamplingBudget, median_interval, sample_until, summarise

times = st.floats(1e-3, 1e9)
sample_lists = st.lists(times, min_size=1, max_size=60)


@given(sample_lists)
def test_summary_is_ordered_and_keeps_the_samples_as_taken(samples):
    timing = summarise(samples, dropped=3, launches_per_sample=4)
    assert min(samples) <= timing.p05_us <= timing.median_us <= timing.p95_us <= max(samples)
    assert timing.median_us == pytest.approx(np.median(samples))
    assert timing.samples_us == tuple(samples)
    assert (timing.dropped, timing.launches_per_sample) == (3, 4)
    assert (timing.ci95_rel is None) == (len(samples) < 2)


def test_summary_by_hand():
    timing = summarise([5.0, 1.0, 4.0, 2.0, 3.0, 6.0])
    assert timing.median_us == 3.5
    assert timing.p05_us == 1.25
    assert timing.p95_us == 5.75
    assert timing.ci95_rel == pytest.approx((6 - 1) / 2 / 3.5)


def test_equal_samples_leave_no_uncertainty_and_below_six_no_order_statistics_hold_the_median():
    assert summarise([2.5] * 20).ci95_rel == 0
    for count in range(1, 6):
        assert median_interval([float(i) for i in range(count)]) is None


@each(n=[2, 3, 4, 5])
def test_few_samples_have_students_interval(n):
    """Of normal samples it holds the median in 95 %."""
    source, trials = random.Random(n), 4000
    held = 0
    for _ in range(trials):
        timing = summarise([source.gauss(100, 2) for _ in range(n)])
        held += abs(statistics.fmean(timing.samples_us) - 100) <= timing.ci95_rel * timing.median_us
    assert 0.94 <= held / trials <= 0.96


def _coverage(n, low, high):
    """Probability that the median lies between those order statistics, from the binomial distribution."""
    return sum(math.comb(n, below) for below in range(low, high)) / 2**n


@each(n=[*range(6, 60), 100, 101, 500, 1000])
def test_interval_holds_the_median_in_95_percent_by_the_binomial(n):
    low, high = median_interval(list(range(1, n + 1)))
    coverage = _coverage(n, low, high)
    assert coverage >= 0.95
    # At most one rank too wide on each side, which is what the normal approximation costs.
    assert _coverage(n, low + 2, high - 2) < 0.95


class Gpu:
    """Gives samples, and says what was asked of it."""

    def __init__(self, sample=lambda i: 100.0, clean=lambda batch: True):
        self.batches = []
        self._sample = sample
        self._clean = clean
        self._taken = 0

    def __call__(self, count):
        samples = [self._sample(self._taken + i) for i in range(count)]
        self._taken += count
        self.batches.append(count)
        return samples, self._clean(len(self.batches) - 1)

    @property
    def taken(self):
        return sum(self.batches)


def _noise(spread, seed=1):
    source = random.Random(seed)
    return lambda i: 100.0 * (1 + spread * source.gauss(0, 1))


def test_steady_samples_stop_at_the_first_batch():
    gpu = Gpu()
    sampled = sample_until(gpu, 100.0, SamplingBudget(min_samples=7), max_batch=16)
    assert len(gpu.batches) == 1
    assert 7 <= len(sampled.samples_us) == gpu.taken <= 16
    assert sampled.dropped == 0


def test_noisy_samples_go_on_until_the_median_is_known():
    gpu = Gpu(_noise(0.01))
    sampled = sample_until(
        gpu, 100.0, SamplingBudget(target_ci95_rel=0.002, max_samples=10_000, seconds=10), max_batch=10
    )
    assert len(gpu.batches) > 2
    assert summarise(sampled.samples_us).ci95_rel <= 0.002
    assert summarise(sampled.samples_us[:-10]).ci95_rel > 0.002


@pytest.mark.parametrize(("seconds", "launches"), [(0.01, 1), (0.1, 10)])
def test_budget_of_every_launch_behind_a_sample_ends_sampling_that_stays_noisy(seconds, launches):
    gpu = Gpu(_noise(0.3))
    budget = SamplingBudget(target_ci95_rel=1e-6, seconds=seconds)
    sampled = sample_until(gpu, 100.0, budget, max_batch=10, launches_per_sample=launches)
    assert seconds * 1e6 <= launches * sum(sampled.samples_us) <= 1.3 * seconds * 1e6


def test_disturbed_batches_are_dropped_with_their_number():
    gpu = Gpu(lambda i: 100.0 + i, clean=lambda batch: batch % 2 == 1)
    budget = SamplingBudget(target_ci95_rel=1e-9, seconds=1e6, max_samples=40)
    sampled = sample_until(gpu, 100.0, budget, max_batch=10)
    assert sampled.samples_us == tuple(100.0 + i for i in (*range(10, 20), *range(30, 40)))
    assert (sampled.dropped, sampled.throttled) == (20, 0)


@pytest.mark.parametrize(
    ("clean", "most", "found"),
    [(lambda batch: False, {"max_samples": 20}, (20, 0, 20)), (lambda batch: batch >= 3, {}, (10, 30, 0))],
)
def test_disturbed_batches_make_no_median_precise_and_are_kept_where_there_is_nothing_else(
    clean, most, found
):
    sampled = sample_until(Gpu(clean=clean), 100.0, SamplingBudget(seconds=1e6, **most), max_batch=10)
    assert (len(sampled.samples_us), sampled.dropped, sampled.throttled) == found


@each(
    max_batch=[1, 4, 100],
    slow=[(5e4, 0, 2), (1e8, 0, 2), (5e4, 0.002, 3), (5e4, 0.1, 6), (1e6, 0.1, 6), (1e8, 0.1, 2)],
)
def test_slow_launch_has_two_samples_where_they_hardly_differ_and_else_six_unless_they_take_too_long(
    slow, max_batch
):
    launch_us, spread, samples = slow
    gpu = Gpu(lambda i: launch_us * (1 + spread * (i % 2)))
    sampled = sample_until(gpu, launch_us, SamplingBudget(seconds=0.2), max_batch)
    assert len(sampled.samples_us) == samples


@each(really=[10.0, 1000.0])
def test_kernel_whose_first_launch_alone_is_slow_is_sampled_as_it_is(really):
    gpu = Gpu(lambda i: really)
    assert len(sample_until(gpu, 1e5, SamplingBudget(), max_batch=64).samples_us) >= 7


def test_samples_that_are_set_aside_are_made_up_for_but_not_for_ever():
    gpu = Gpu(lambda i: 1e5, clean=lambda batch: batch > 0)
    assert len(sample_until(gpu, 1e5, SamplingBudget(seconds=0.2), max_batch=3).samples_us) == 2
    hot = Gpu(lambda i: 1e5, clean=lambda batch: False)
    assert sample_until(hot, 1e5, SamplingBudget(seconds=0.2), max_batch=3).throttled == 12


@each(spread=[0.0003, 0.001, 0.005, 0.02])
def test_an_interval_of_a_slow_launch_holds_its_time_though_sampling_stops_at_the_first_good_one(spread):
    source, trials, held = random.Random(1), 2000, 0
    for _ in range(trials):
        gpu = Gpu(lambda i: 1e5 * source.gauss(1, spread))
        timing = sample_until(gpu, 1e5, SamplingBudget(), max_batch=64)
        held += abs(timing.median_us - 1e5) <= timing.ci95_rel * timing.median_us
    assert held / trials > 0.88


@given(
    first=st.floats(0.01, 1e7),
    spread=st.floats(0, 2),
    max_batch=st.integers(3, 1000),
    seconds=st.floats(0.01, 1),
    seed=st.integers(0, 100),
)
def test_sampling_always_ends_near_its_budget(first, spread, max_batch, seconds, seed):
    source = random.Random(seed)
    gpu = Gpu(lambda i: first * (1 + spread * source.random()))
    sampled = sample_until(gpu, first, SamplingBudget(seconds=seconds), max_batch)
    assert len(sampled.samples_us) + sampled.dropped == gpu.taken >= 2
    assert sum(sampled.samples_us) <= max(2 * (1 + spread) * seconds * 1e6, 7 * (1 + spread) * first)
