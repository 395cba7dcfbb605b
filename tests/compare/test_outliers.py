# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Cards that differ from the fleet median: found where they are, and named nowhere else."""

import math
import random
from statistics import fmean

import pytest

from gpuprof.comparison.outliers import CardSeries, judge_cards, spread_of

CASES = 9
PARTS = ("dram", "fma", "shared")


def fleet(cards, *, rounds=3, spread=0.002, seed=1, slow=()):
    """Cases of 200 µs and more on cards that are alike, except `slow` ones: (card, part or "", factor)."""
    rng = random.Random(seed)
    own = {f"card{number}": rng.gauss(0, 0.0015) for number in range(cards)}
    found = []
    for number in range(CASES):
        part = PARTS[number % len(PARTS)]
        rounds_us = {}
        for card, offset in own.items():
            factor = math.prod(
                by for name, where, by in slow if name == card and where in ("", part, f"case{number}")
            )
            times = [
                200 * (number + 1) * factor * math.exp(offset + rng.gauss(0, spread)) for _ in range(rounds)
            ]
            rounds_us[card] = times
        found.append(CardSeries(f"case{number}", rounds_us, part))
    return found


def confirmed(series):
    return [outlier for outlier in judge_cards("", 0, series).outliers if outlier.confirmed]


def named(series):
    return [outlier.card for outlier in confirmed(series)]


@pytest.mark.parametrize("factor", [1.02, 0.98])
@pytest.mark.parametrize("cards", [30, 200])
def test_card_that_is_2_percent_off_in_everything_is_named(cards, factor):
    (found,) = confirmed(fleet(cards, slow=[("card7", "", factor)]))
    assert found.card == "card7"
    assert found.whole is not None
    assert found.gravest.change == pytest.approx(factor - 1, abs=0.008)
    assert found.gravest.cases == CASES


@pytest.mark.parametrize(("cards", "sure"), [(2, 0.025), (3, 0.025), (8, 0.02)])
def test_few_cards_are_judged_too(cards, sure):
    """Dozens of cases do not blunt what all of them say together."""
    for seed in range(20):
        assert named(fleet(cards, seed=seed)) == []
    found = [named(fleet(cards, seed=seed, slow=[("card0", "", 1 + sure)])) for seed in range(20)]
    assert all(set(names) <= {"card0"} for names in found)
    assert sum(map(len, found)) >= 18


@pytest.mark.parametrize(
    ("rounds", "slow", "parts", "cases"),
    [({}, ("dram", 1.03), ["dram"], None), ({"rounds": 7}, ("case4", 1.05), None, ["case4"])],
)
def test_a_card_is_named_for_the_part_or_the_case_that_is_slow(rounds, slow, parts, cases):
    (found,) = confirmed(fleet(100, **rounds, slow=[("card3", *slow)]))
    assert (found.card, found.whole) == ("card3", None)
    assert parts in (None, [part.of for part in found.parts])
    assert cases in (None, [case.of for case in found.cases])


def test_one_slow_case_of_one_round_is_told_and_not_confirmed():
    judged = judge_cards("", 0, fleet(100, rounds=1, slow=[("card3", "case4", 1.3)]))
    assert [found for found in judged.outliers if found.confirmed] == []
    assert [(found.card, [case.of for case in found.cases]) for found in judged.outliers] == [
        ("card3", ["case4"])
    ]


def test_times_of_two_values_make_no_outliers():
    """Where its arrays lie decides which of two times a short kernel takes."""
    rng = random.Random(3)
    series = [
        CardSeries(f"case{number}", {f"card{card}": [6.0 * rng.choice((1, 1, 1.06))] for card in range(200)})
        for number in range(6)
    ]
    assert named(series) == []


def test_many_slow_cards_do_not_hide_each_other():
    slow = [(f"card{number}", "", 1.04) for number in range(40)]
    assert set(named(fleet(200, slow=slow))) == {name for name, _, _ in slow}


@pytest.mark.parametrize("cards", [2, 3, 8])
def test_few_cards_take_more_than_their_own_spread_to_judge_by(cards):
    """Two cards that happen to agree to a millionth say nothing of a third that is 1 % slower."""
    slow = [("card0", "", 1.01)]
    assert named(fleet(cards, spread=1e-6, rounds=8, slow=slow)) == []
    assert named(fleet(cards, rounds=8, slow=[("card0", "", 1.06)])) == ["card0"]


def test_of_two_cards_the_slower_one_is_named():
    (found,) = confirmed(fleet(2, rounds=8, slow=[("card1", "", 0.9)]))
    assert found.card == "card0"
    assert found.gravest.change == pytest.approx(1 / 0.9 - 1, abs=0.02)


def test_one_card_is_judged_by_nothing():
    judged = judge_cards("", 0, fleet(1))
    assert (judged.outliers, judged.changes, judged.threshold) == ((), {}, None)


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8, 11, 20, 21, 300])
def test_spread_is_the_standard_deviation_of_normal_values(count):
    rng = random.Random(count)
    found = [spread_of(values) for values in _normal(rng, count, 4000 if count < 20 else 200)]
    assert fmean(found) == pytest.approx(1.0, abs=0.04)


def test_spread_withstands_values_that_are_far_off():
    rng = random.Random(5)
    (values,) = _normal(rng, 100, 1)
    assert spread_of([*values, *(1e6 for _ in range(40))]) < 3


@pytest.mark.parametrize("cards", [5, 6, 8, 30])
def test_evidence_joins_over_cases(cards):
    """3 % in each of 17 short cases of one round, where cards spread by 0.07 % over all."""
    for factor in (1.03, 0.97):
        rng = random.Random(cards)
        series = [
            CardSeries(
                f"case{number}",
                {
                    f"card{card}": [
                        (12 + number) * (factor if card == 2 else 1) * math.exp(rng.gauss(0, 0.0028))
                    ]
                    for card in range(cards)
                },
                PARTS[number % 3],
            )
            for number in range(17)
        ]
        (found,) = confirmed(series)
        assert (found.card, found.gravest.cases) == ("card2", 17)
        assert found.gravest.change == pytest.approx(factor - 1, abs=0.003)


def test_healthy_cards_are_seldom_named():
    """Of 4,000 healthy cards at most one in a thousand may be named."""
    false = sum(len(named(fleet(100, rounds=1 + seed % 4, seed=seed))) for seed in range(40))
    assert false <= 0.001 * 4000


def _normal(rng, count, lists):
    return [[rng.gauss(0, 1) for _ in range(count)] for _ in range(lists)]
