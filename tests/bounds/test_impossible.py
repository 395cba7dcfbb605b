# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A time below what the work needs is refused; one that is only near it is not."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from test_floors import DEVICE, case_with

from gpuprof.bounds import with_bounds, without_impossible_time
from gpuprof.results import Counter, Timing, TimingPair

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from floors import bounded

FILES = sorted(Path(__file__).parent.glob("measured-*.json.xz"))


def timed(median_us, counters=None, **parts):
    timing = TimingPair(Timing(median_us, median_us, median_us, None, ((median_us,),)), None)
    case = case_with(counters or {}, timing=timing, **parts)
    return without_impossible_time(with_bounds(case, DEVICE))


#: 49,152 bytes, of which 16,384 may stay in L2, at 100 GB/s.
DRAM_US = 0.32768


@pytest.mark.parametrize(
    ("share", "outcome"), [(0.5, "incorrect"), (0.89, "incorrect"), (0.91, "ok"), (1.2, "ok")]
)
def test_bytes_that_must_move_take_their_time(share, outcome):
    case = timed(share * DRAM_US)
    assert case.outcome == outcome
    assert (case.timing is None) == (outcome != "ok")
    if outcome != "ok":
        assert case.reason.startswith(
            f"Faster than possible: {share * DRAM_US:.4g} us, where its work takes 0.3277 us"
        )
        assert case.throughput is None
        assert "of DRAM (" in case.reason
        assert case.timing_reason == case.throughput_reason == "an impossible time gives no speed"
        assert (case.bounds, case.bound_by) == ({}, None)


def test_counts_of_the_whole_grid_bind_and_estimates_do_not():
    busy = {"warp_instructions": 40_000}  # 1 us
    assert timed(0.5, busy).outcome == "incorrect"
    assert "of Issue slots (" in timed(0.5, busy).reason
    sampled = {"warp_instructions": Counter(40_000, "", "sim", sampled_blocks=6, total_blocks=60)}
    assert timed(0.5, sampled).outcome == "ok"
    whole = {"warp_instructions": Counter(40_000, "", "sim", sampled_blocks=60, total_blocks=60)}
    assert timed(0.5, whole).outcome == "incorrect"


def test_a_launch_a_reference_and_a_case_without_times_are_left_alone():
    assert timed(0.4, event_floor_us=2.0).outcome == "ok"
    assert timed(0.1, is_reference=True).outcome == "ok"
    failed = case_with({}, outcome="failed")
    assert without_impossible_time(failed) == failed


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_nothing_that_was_measured_is_refused(file):
    for case, found in bounded(file):
        us = case["median_us"]
        timed = replace(found, timing=TimingPair(Timing(us, us, us, None, ((us,),)), None))
        assert without_impossible_time(timed).outcome == "ok", case["kernel"]
