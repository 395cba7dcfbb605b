# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Verdicts on times: what identical code gets, what slower code gets, and what too few rounds allow."""

import random
import sys
from math import exp
from pathlib import Path

import pytest

from gpuprof.records import replace

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import recorded
from compared_runs import ladder
from verdict_noise import KINDS
from verdicts import Tally, pairs_of, simulated, slowed

from gpuprof.comparison.judging import ENOUGH_ROUNDS, Times, judge, times_of
from gpuprof.statistics import summarise

STEPS = [1 + 0.0005 * step for step in range(16)]


def times(median_us, factor=1.0, rounds=16):
    return Times([median_us * step * factor for step in STEPS[:rounds]])


@pytest.mark.parametrize(
    ("factor", "verdict"),
    [(1.0, "same"), (1.02, "regressed"), (0.98, "improved"), (1.5, "regressed"), (1.004, "same")],
)
def test_verdict_on_a_quiet_kernel(factor, verdict):
    found = judge(times(500), times(500, factor))
    assert found.verdict == verdict
    assert found.change == pytest.approx(factor - 1, abs=1e-6)
    assert found.low <= found.change <= found.high


def test_a_change_that_sessions_may_cause_is_none():
    """However clear it is: 0.4 % of a long launch."""
    found = judge(Times([500.0] * 60), Times([502.0] * 60))
    assert found.verdict == "same"
    assert 0.01 < found.detectable < 0.02


@pytest.mark.parametrize(("median_us", "least"), [(8.0, 0.03), (50.0, 0.01), (5000.0, 0.01)])
def test_short_launches_must_change_by_more(median_us, least):
    def many(factor):
        return Times([time for _ in range(4) for time in times(median_us, factor).medians_us])

    assert judge(many(1), many(1 + 0.9 * least)).verdict == "same"
    assert judge(many(1), many(1 + 1.1 * least)).verdict == "regressed"


@pytest.mark.parametrize(("median_us", "slowdown"), [(25.0, 0.08), (60.0, 0.08), (2500.0, 0.05)])
def test_one_round_each_tells_what_runs_do_not_differ_by(median_us, slowdown):
    base = Times([median_us])
    assert judge(base, Times([median_us * (1 + slowdown)])).verdict == "regressed"
    assert judge(base, Times([median_us / (1 + slowdown)])).verdict == "improved"
    found = judge(base, Times([1.002 * median_us]))
    assert found.verdict == "same"
    assert found.detectable < 1.6 * slowdown


@pytest.mark.parametrize("rounds", [1, 2, 4, 8, 16, 32])
def test_more_rounds_tell_less(rounds):
    """What the rounds show takes the place of what is assumed."""
    found = judge(times(500, rounds=rounds), times(500, rounds=rounds))
    assert found.high < 0.008 + 0.02 / rounds**0.5
    wild = Times([500 * (1 + 0.05 * (-1) ** number) for number in range(rounds)])
    assert judge(wild, wild).high > (0.02 if rounds == 1 else 0.2 / rounds**0.5)


def test_samples_that_scatter_widen_what_one_round_says():
    quiet, wild = Times([500.0]), Times([500.0], error=0.02)
    assert judge(quiet, Times([530.0])).verdict == "regressed"
    assert judge(wild, Times([530.0], error=0.02)).verdict == "uncertain"


def test_what_was_taken_off_for_the_events_is_no_change():
    """Of 10 µs one and a half were the events' in one of two runs; of a millisecond that is nothing."""
    assert judge(Times([8.0], event_us=2.9), Times([9.6], event_us=1.3)).verdict == "uncertain"
    assert judge(Times([1000.0], event_us=2.9), Times([1050.0], event_us=1.3)).verdict == "regressed"


def test_an_outlier_hides_nothing():
    base, new = times(500), times(500, 1.02)
    assert judge(Times([*base.medians_us[:-1], 900.0]), new).verdict == "regressed"
    assert judge(base, Times([*base.medians_us[:-1], 900.0])).verdict == "same"


def test_samples_that_drift_say_less_however_many_there_are():
    """Clocks that are being held back: 4 % from the first sample to the last."""

    def error(samples):
        timing = replace(ladder(1).cases[0].timing, cold=summarise(samples))
        return times_of(replace(ladder(1).cases[0], timing=timing)).error

    rng = random.Random(3)
    steady = [500 * exp(rng.gauss(0, 0.01)) for _ in range(400)]
    drifting = [time * (1 + 0.04 * number / 400) for number, time in enumerate(steady)]
    assert error(steady) < 0.0012
    assert error(steady[:100]) > 1.5 * error(steady)
    assert error(drifting) > 0.01


@pytest.fixture(scope="module")
def pairs():
    """Every two recorded runs of one case, by the row of docs/verdicts.md that they belong to."""
    found = {}
    for file in recorded.FILES:
        for pair, row in pairs_of(recorded.read(file), stretches=False):
            found.setdefault(row, []).append(pair)
    return found


def test_recorded_runs_of_identical_code_are_told_apart_in_one_of_a_thousand_at_most(pairs):
    every = [pair for group in pairs.values() for pair in group]
    assert len(every) > 10_000
    assert Tally.of(every).false <= len(every) / 1000


def test_slowdowns_of_recorded_runs_are_found_in_one_round_each(pairs):
    """8 % from 25 µs on, 5 % from 100 µs on, and runs of identical code are the same."""
    assert Tally.of(slowed(pairs["to 100 µs"], 0.08)).share("regressed") > 95
    assert Tally.of(slowed(pairs["longer"], 0.05)).share("regressed") > 95
    assert Tally.of(pairs["to 100 µs"]).share("same") > 80
    assert Tally.of(pairs["longer"]).share("same") > 90


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_simulated_rounds_of_identical_code_are_the_same(kind):
    """The table of docs/verdicts.md in small."""
    found = simulated(kind, ENOUGH_ROUNDS, 300, 1.0, seed=7)
    assert found.false <= 2
    assert found.share("same") > 95


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_simulated_slowdowns_are_found(kind):
    assert simulated(kind, ENOUGH_ROUNDS, 200, 1 + kind.slowdown, seed=7).share("regressed") >= 95


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_what_is_called_detectable_is_found(kind):
    """What one pair of measurements calls detectable another pair finds: 19 of 20 times, within chance."""
    rng = random.Random(5)
    found = 0
    for _ in range(200):
        detectable = judge(Times(kind.rounds(16, rng)), Times(kind.rounds(16, rng))).detectable
        slower = Times(kind.rounds(16, rng, 1 + detectable))
        found += judge(Times(kind.rounds(16, rng)), slower).verdict == "regressed"
    assert found >= 175


def test_what_is_recorded_is_a_round_of_each_run(tmp_path):
    runs = [replace(ladder(2, seed=seed), created_utc=f"2026-01-02T03:{seed:02}:05Z") for seed in range(5)]
    found = recorded.taken_down([*runs, runs[0], replace(runs[1], backend="sim")])
    assert {len(rounds) for rounds in found.values()} == {10}
    recorded.write(found, tmp_path / "rounds.json.xz")
    assert recorded.read(tmp_path / "rounds.json.xz") == found
    assert Tally.of(pair for pair, _ in pairs_of(found, stretches=True)).false == 0
