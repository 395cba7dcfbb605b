# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The cards of one run against each other: the one that is off is named, with what its readings say."""

import random
import re

import pytest
from compared_runs import runs

from gpuprof.comparison.cautions import cautions
from gpuprof.comparison.fleet import cards_of
from gpuprof.records import replace
from gpuprof.report.html import render_html
from gpuprof.results import Clocks, Condition, Place

DEVICE = runs.DEVICE


def cards(count, slower=None, seed=1, jitter=0.003):
    """The same ladder on some cards, each of which is off by a little, and by `slower` where that says."""
    base = runs.gemm_run()
    draw = random.Random(seed)
    cases = []
    for number in range(count):
        factor = (1 + draw.gauss(0, jitter)) * (1 + (slower or {}).get(number, 0.0))
        for case in base.cases:
            if case.timing is not None:
                cold = runs.timing(case.timing.cold.median_us * factor, 0.002)
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
    (kind,) = cards_of(run).found.kinds
    return {found.card.rpartition(" (")[2].rstrip(")"): found for found in kind.outliers}


def banner(run, code):
    (found,) = (banner for banner in cautions(run) if banner.code == code)
    return found


def test_cards_that_agree_have_a_spread_and_no_outlier():
    run = cards(4)
    (kind,) = cards_of(run).found.kinds
    assert (kind.outliers, kind.cards, len(kind.cases)) == ((), 4, 9)
    assert 0 < max(kind.changes.values()) - min(kind.changes.values()) < 0.02
    assert kind.facts in banner(run, "cards").detail


@pytest.mark.parametrize("count", [2, 3, 5, 16])
def test_card_that_is_slower_is_the_one_that_is_named(count):
    run = cards(count, {1: 0.05})
    ((name, found),) = outliers(run).items()
    assert name in run.device_label(1)
    assert found.change == pytest.approx(0.05, abs=0.012)
    assert found.causes == ()
    assert run.device_label(1) in banner(run, "card_outlier").title


def test_one_card_or_other_models_have_nothing_to_be_held_against():
    two = cards(2, {1: 0.5})
    for run in (
        runs.gemm_run(),
        runs.sim_run(),
        replace(two, devices=(DEVICE, replace(DEVICE, name="Another card"))),
    ):
        assert cards_of(run) is None


def test_condition_that_only_one_card_has_is_a_cause():
    load = Condition("load", "disturbs", "kernels of other processes ran in 97 % of the last moment")
    mode = Condition("MIG", "disturbs", "on")
    for count in (2, 3):
        run = with_place(cards(count, {1: 0.1}), 1, conditions=(load, mode))
        run = with_place(run, 0, conditions=(mode,))
        (found,) = outliers(run).values()
        assert found.causes == (f"load: {load.text}",)


@pytest.mark.parametrize("count", [2, 3])
def test_lower_clock_and_what_holds_it_back_are_causes(count):
    run = cards(count, {0: 0.1})
    usual = next(case.clocks for case in run.cases if case.clocks).after
    low = replace(usual, sm_mhz=1700, throttle_reasons=("software thermal slowdown",))
    slow = Clocks(low, low)
    cases = [replace(one, clocks=slow) if one.device == 0 and one.clocks else one for one in run.cases]
    (found,) = outliers(replace(run, cases=tuple(cases))).values()
    assert found.causes == (
        "held back: software thermal slowdown",
        f"SM clock 1,700 MHz where others have {usual.sm_mhz:,}",
    )


def test_narrower_memory_and_another_driver_are_causes():
    run = cards(3, {1: 0.1})
    full, less = (replace(DEVICE, measured_copy_bandwidth_gbps=rate) for rate in (4000.0, 3500.0))
    run = with_place(replace(run, devices=(full, less, full)), 1, environment={"driver": "570.1"})
    (found,) = outliers(run).values()
    assert found.causes == (
        "copies 3,500 GB/s where others have 4,000",
        "driver 570.1 where most have 580.95.05",
    )
    detail = banner(run, "unlike_software").detail
    assert "driver 570.1" in detail
    assert "driver 580.95.05" in detail


def test_page_of_several_cards_names_each_of_them_and_has_every_id_once():
    run = with_place(cards(3, {1: 0.1, 2: 0.2}), 0, lost="it fell off the bus")
    page = render_html(run)
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert "it fell off the bus" in page
    table = page[page.index('id="cards-title"') : page.index('id="environment-title"')]
    assert all(f"(device {number})" in table or f"(GPU {number})" in table for number in range(3))
    assert "slower over its 9 cases" in table
