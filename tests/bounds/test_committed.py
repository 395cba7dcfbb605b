# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""No floor in a committed results file lies above the time beside it, as it was recorded and as of today."""

from dataclasses import replace
from pathlib import Path

import pytest

from gpuprof.bounds import with_bounds
from gpuprof.reading import read_run
from gpuprof.results import Counter, Measurement

SAMPLES = Path(__file__).parents[2] / "samples"
FILES = sorted(path for path in SAMPLES.rglob("*.json") if '"event_floor_us"' in path.read_text("utf-8"))


def above(case: Measurement) -> list[str]:
    median_us = case.timing.cold.median_us
    where = f"{case.kernel} at {case.problem.label}"
    return [
        f"{where}: {key} {bound.least_us:.4g} us, measured {median_us:.4g} us"
        for key, bound in case.bounds.items()
        if bound.least_us > median_us
    ]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(SAMPLES).as_posix())
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
    assert len(FILES) >= 7


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
