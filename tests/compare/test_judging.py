# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Verdicts on times: what identical code gets, what slower code gets, and what too few rounds allow."""

import random
import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from compared_runs import ladder
from verdict_noise import KINDS
from verdicts import dealt, measured_table, simulated

from gpuprof.comparison.judging import ENOUGH_ROUNDS, FEWEST_ROUNDS, judge
from gpuprof.comparison.noise import CLASSES, class_of
from gpuprof.store import write_run

STEPS = [1 + 0.0005 * step for step in range(16)]


def times(median_us, factor=1.0, rounds=16):
    return [median_us * step * factor for step in STEPS[:rounds]]


@pytest.mark.parametrize(
    ("factor", "verdict"),
    [(1.0, "same"), (1.02, "regressed"), (0.98, "improved"), (1.5, "regressed"), (1.004, "same")],
)
def test_verdict_on_a_quiet_kernel(factor, verdict):
    found = judge(times(500), times(500, factor))
    assert (found.verdict, found.by_ranks, found.rounds) == (verdict, True, (16, 16))
    assert found.change == pytest.approx(factor - 1, abs=1e-6)
    assert found.low <= found.change <= found.high


def test_a_change_that_sessions_may_cause_is_none():
    """However clear it is: 0.4 % of a long launch."""
    found = judge([500.0] * 20, [502.0] * 20)
    assert found.low > 0
    assert found.verdict == "same"
    assert 0.01 < found.detectable < 0.02


@pytest.mark.parametrize(("median_us", "least"), [(8.0, 0.03), (50.0, 0.01), (5000.0, 0.01)])
def test_short_launches_must_change_by_more(median_us, least):
    assert judge(times(median_us), times(median_us, 1 + 0.9 * least)).verdict == "same"
    assert judge(times(median_us), times(median_us, 1 + 1.1 * least)).verdict == "regressed"


@pytest.mark.parametrize("rounds", [(1, 1), (7, 7), (1, 200), (3, 16)])
def test_too_few_rounds_tell_large_changes_only(rounds):
    base, new = ([500.0] * count for count in rounds)
    assert judge(base, new).verdict == "uncertain"
    assert "--rounds" in judge(base, new).why
    assert judge(base, [1.05 * time for time in new]).verdict == "uncertain"
    assert judge(base, [2.0 * time for time in new]).verdict == "regressed"
    assert judge(base, [0.5 * time for time in new]).verdict == "improved"


def test_the_fewest_rounds_decide_when_they_lie_apart():
    base, new = times(500, rounds=FEWEST_ROUNDS), times(500, 1.02, FEWEST_ROUNDS)
    assert judge(base, new).verdict == "regressed"
    assert judge(base[1:], new).verdict == "uncertain"


def test_rounds_that_scatter_say_so():
    wild = [500 * (1 + 0.02 * (step % 9)) for step in range(16)]
    found = judge(wild, wild[::-1])
    assert found.verdict == "uncertain"
    assert "spread" in found.why


def test_an_outlier_hides_nothing():
    base, new = times(500), times(500, 1.02)
    assert judge([*base[:-1], 900.0], new).verdict == "regressed"
    assert judge(base, [*base[:-1], 900.0]).verdict == "same"


def test_swapping_base_and_new_turns_the_verdict():
    there, back = judge(times(60), times(60, 1.05)), judge(times(60, 1.05), times(60))
    assert (there.verdict, back.verdict) == ("regressed", "improved")
    assert (1 + there.change) * (1 + back.change) == pytest.approx(1)


def test_classes_follow_each_other_and_grow_quieter():
    assert [class_of(time) for time in (1, 24.9, 25, 99, 100, 1e9)] == [
        CLASSES[0], CLASSES[0], CLASSES[1], CLASSES[1], CLASSES[2], CLASSES[2]
    ]  # fmt: skip
    for quieter, kind in zip(CLASSES[1:], CLASSES, strict=False):
        assert quieter.below_us > kind.below_us
        assert quieter.least <= kind.least <= kind.close
        assert quieter.widest <= kind.widest


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_simulated_rounds_of_identical_code_are_the_same(kind):
    """The table of docs/verdicts.md in small: 31 of 100,000 were wrong there."""
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
        detectable = judge(kind.rounds(16, rng), kind.rounds(16, rng)).detectable
        found += judge(kind.rounds(16, rng), kind.rounds(16, rng, 1 + detectable)).verdict == "regressed"
    assert found >= 175


def test_runs_of_identical_code_are_tallied(tmp_path):
    """Files of a round each, and one of many rounds."""
    for card, runs in (("many", [ladder(1, seed=seed) for seed in range(20)]), ("one", [ladder(40)])):
        (tmp_path / card).mkdir()
        for number, run in enumerate(runs):
            stamp = f"2026-01-02T03:{number:02}:05Z"
            write_run(replace(run, created_utc=stamp), tmp_path / card / f"{number}.json")
    (tmp_path / "none").mkdir()
    folders = [tmp_path / name for name in ("many", "one", "none")]
    arguments = Namespace(runs=folders, comparisons=200, rounds=16, seed=0)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in measured_table(arguments)][2:]
    assert [row[:4] for row in rows] == [
        ["many: NVIDIA H200", "9", "10", "shuffled"],
        ["many: NVIDIA H200", "9", "10", "in the order taken"],
        ["one: NVIDIA H200", "9", "16", "shuffled"],
        ["one: NVIDIA H200", "9", "16", "in the order taken"],
        ["none: no case of a GPU with two rounds", "", "", ""],
    ]
    for row in rows[:4]:
        assert row[4] == "0 of 200"
        assert row[7].startswith("100.0 % of ")


def test_rounds_are_dealt_without_being_used_twice():
    values = [float(value) for value in range(40)]
    for in_order in (False, True):
        base, new = dealt(values, 16, random.Random(1), in_order=in_order)
        assert len({*base, *new}) == 32
        assert (max(base) < min(new)) == in_order
