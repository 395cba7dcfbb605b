# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Floors: none lies above a time that a card took, and a time below what the work needs is refused."""

import statistics
import sys
from functools import cache
from pathlib import Path

import pytest
from test_floors import DEVICE, case_with

from gpuprof.bounds import with_bounds, without_impossible_time
from gpuprof.reading import read_run
from gpuprof.records import replace
from gpuprof.results import Counter, Measurement, Timing, TimingPair

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from floors import bounded

FILES = sorted(Path(__file__).parent.glob("measured-*.json.xz"))


@cache
def cases_of(file):
    return [(case, found, found.bounds[found.bound_by].least_us) for case, found in bounded(file)]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_no_bound_lies_above_a_measured_time(file):
    above = [
        f"{case['kernel']} at {found.problem.label} {found.problem.dtype}: {found.bound_by} {least:.4g} us,"
        f" measured {case['median_us']:.4g} us"
        for case, found, least in cases_of(file)
        if least > case["median_us"]
    ]
    assert above == []


def test_there_are_enough_of_them():
    assert sum(len(cases_of(file)) for file in FILES) >= 600
    for file in FILES:
        operations = {found.problem.operation for _, found, _ in cases_of(file)}
        assert operations == {"gemm", "transpose", "reduce", "softmax"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_products_of_4096_take_little_more_than_their_bounds(file):
    ratios = [
        case["median_us"] / least
        for case, found, least in cases_of(file)
        if found.problem.operation == "gemm" and found.problem.label == "4096"
    ]
    assert len(ratios) > 20
    assert statistics.median(ratios) <= 1.35


SAMPLES = Path(__file__).parents[2] / "samples"
COMMITTED = sorted(path for path in SAMPLES.rglob("*.json") if '"event_floor_us"' in path.read_text("utf-8"))


def above(case: Measurement) -> list[str]:
    median_us = case.timing.cold.median_us
    where = f"{case.kernel} at {case.problem.label}"
    return [
        f"{where}: {key} {bound.least_us:.4g} us, measured {median_us:.4g} us"
        for key, bound in case.bounds.items()
        if bound.least_us > median_us
    ]


@pytest.mark.parametrize("file", COMMITTED, ids=lambda file: file.relative_to(SAMPLES).as_posix())
def test_no_floor_lies_above_the_time_beside_it(file):
    run = read_run(file)
    timed = [case for case in run.cases if case.timing and case.timing.cold]
    devices = {device.name: device for device in run.devices}
    found = [text for case in timed for text in above(case)]
    found += [
        text for case in timed for text in above(with_bounds(case, devices.get(case.device, run.devices[0])))
    ]
    assert found == []


def test_there_are_such_files():
    assert len(COMMITTED) >= 7


def test_no_floor_rests_on_an_estimate():
    file = SAMPLES / "gemm-h200.json"
    run = read_run(file)
    case = next(one for one in run.cases if one.timing and one.executor_counters and "l1" in one.bounds)

    def guessed(counter: Counter) -> Counter:
        return replace(counter, is_estimate=True)

    estimated = {name: guessed(counter) for name, counter in case.executor_counters.items()}
    bounds = with_bounds(replace(case, executor_counters=estimated, counters={}), run.devices[0]).bounds
    assert set(bounds) <= {"dram", "launch"}


def test_the_floor_of_multiply_adds_rests_on_what_was_seen_where_machine_code_is_only_bounded():
    run = read_run(SAMPLES / "gemm-h200.json")
    case = next(one for one in run.cases if one.bounds and "pipe_fma_instructions" in one.executor_counters)
    total = case.executor_counters["warp_instructions"]
    for is_least, counter in ((False, "pipe_fma_instructions"), (True, "ffma_thread_instructions")):
        counters = {**case.executor_counters, "warp_instructions": replace(total, is_least=is_least)}
        bounds = with_bounds(replace(case, counters={}, executor_counters=counters), run.devices[0]).bounds
        assert bounds["fma"].counters == (counter,)


sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))


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
            f"Faster than possible: {share * DRAM_US:.4g} µs, where its work takes 0.3277 µs"
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
