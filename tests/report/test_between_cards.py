# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Cards of one kind against each other: the one that is off is named, with what its readings say."""

import random
import re
from dataclasses import replace

import pytest
import synthetic_runs

from gpuprof.analysis.banners import banners
from gpuprof.analysis.between_cards import kinds_of_cards
from gpuprof.report.html import render_html
from gpuprof.results import Clocks, Condition, Place

DEVICE = synthetic_runs.DEVICE


def fleet(count, slower=None, seed=1, jitter=0.003):
    """The same ladder on some cards, each of which is off by a little, and by `slower` where that says."""
    base = synthetic_runs.gemm_run()
    draw = random.Random(seed)
    cases = []
    for number in range(count):
        factor = (1 + draw.gauss(0, jitter)) * (1 + (slower or {}).get(number, 0.0))
        for case in base.cases:
            if case.timing is not None:
                cold = synthetic_runs.timing(case.timing.cold.median_us * factor, 0.002)
                case = replace(case, timing=replace(case.timing, cold=cold))
            cases.append(replace(case, device=number))
    return replace(
        base,
        devices=(DEVICE,) * count,
        places=tuple(Place(str(number)) for number in range(count)),
        cases=tuple(cases),
    )


def with_place(run, number, **fields):
    places = [replace(place, **fields) if at == number else place for at, place in enumerate(run.places)]
    return replace(run, places=tuple(places))


def outliers(run):
    (kind,) = kinds_of_cards(run)
    return {card.device: card for card in kind.outliers}


def test_cards_that_agree_have_a_spread_and_no_outlier():
    (kind,) = kinds_of_cards(fleet(4))
    assert not kind.outliers
    assert 0 < kind.spread < 0.02
    assert kind.cases == 9
    assert re.fullmatch(r"4 cards of .+ are within [\d.]+ % of each other over 9 cases\.", kind.sentence)


@pytest.mark.parametrize("count", [2, 3, 5, 16])
def test_card_that_is_slower_is_the_one_that_is_named(count):
    found = outliers(fleet(count, {1: 0.05}))
    assert list(found) == [1]
    assert found[1].slower == pytest.approx(0.05, abs=0.012)
    assert found[1].sentence.endswith("no clock, power or throttling reading explains it.")


def test_chance_names_nobody_in_a_large_fleet():
    assert sum(len(outliers(fleet(64, seed=seed))) for seed in range(5)) == 0


def test_one_card_or_other_kinds_have_nothing_to_be_held_against():
    assert kinds_of_cards(synthetic_runs.gemm_run()) == ()
    two = fleet(2, {1: 0.5})
    assert kinds_of_cards(replace(two, devices=(DEVICE, replace(DEVICE, name="Another card")))) == ()


def test_condition_that_only_one_card_has_is_a_cause():
    load = Condition("load", "disturbs", "kernels of other processes ran in 97 % of the last moment")
    mode = Condition("MIG", "disturbs", "on")
    run = with_place(fleet(3, {2: 0.1}), 2, conditions=(load, mode))
    run = with_place(run, 0, conditions=(mode,))
    assert outliers(run)[2].causes == (f"load: {load.text}",)


def on_card(run, number, change):
    cases = [change(case) if case.device == number and case.clocks else case for case in run.cases]
    return replace(run, cases=tuple(cases))


def test_lower_clock_is_a_cause():
    run = fleet(3, {0: 0.1})
    clocks = next(case.clocks for case in run.cases if case.clocks)
    low = replace(clocks.after, sm_mhz=round(0.9 * clocks.after.sm_mhz))
    found = outliers(on_card(run, 0, lambda case: replace(case, clocks=Clocks(low, low))))
    assert f"SM clock while timing {low.sm_mhz:,} MHz, the others' {clocks.after.sm_mhz:,} MHz" in (
        found[0].causes
    )


def test_what_held_back_one_card_only_is_a_cause():
    run = fleet(2, {1: 0.1})
    clocks = next(case.clocks for case in run.cases if case.clocks)
    hot = replace(clocks.after, throttle_reasons=("software thermal slowdown",))
    found = outliers(on_card(run, 1, lambda case: replace(case, clocks=Clocks(hot, hot))))
    assert found[1].causes == ("throttled while timing by software thermal slowdown",)


def test_narrower_memory_and_another_driver_are_causes():
    run = fleet(3, {1: 0.1})
    full, less = (replace(DEVICE, measured_copy_bandwidth_gbps=rate) for rate in (4000.0, 3500.0))
    run = replace(run, devices=(full, less, full))
    run = with_place(run, 1, environment={"driver": "570.1"})
    assert outliers(run)[1].causes == (
        "its memory copies 3,500 GB/s, the others' 4,000 GB/s",
        "driver 570.1, the others' 580.95.05",
    )
    (banner,) = (banner for banner in banners(run) if banner.code == "unlike_software")
    assert "driver 570.1" in banner.detail
    assert "driver 580.95.05" in banner.detail


def test_page_of_several_cards_has_every_id_once():
    run = with_place(fleet(3, {1: 0.1, 2: 0.2}), 0, lost="it fell off the bus")
    page = render_html(run)
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    for number in range(3):
        assert f"(GPU {number})" in page
    assert "it fell off the bus" in page
    table = page[page.index('id="cards-title"') : page.index('id="environment-title"')]
    assert [row.count("<td") for row in re.findall(r"<tr>.*?</tr>", table, re.DOTALL)[1:]] == [5] * 3
