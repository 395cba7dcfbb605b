# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels that forget one thing: each race is found and told in full, and the right twin is left alone.

The rule is the PTX memory model's: overlapping accesses of two threads, one of them a write, are ordered by
causality or both strong with a scope that holds both threads.
"""

import re

import global_race_sources
import pytest
import scope_race_sources
import shared_race_sources
import signal_race_sources
from executor_harness import caught, run_cuda
from global_race_sources import arrays
from signal_race_sources import OTHERWISE

from gpuprof.executor import FaultKind

SHARED = {*signal_race_sources.SHARED, *scope_race_sources.SHARED}
WHERE = re.compile(r" in line (\d+)(?: with another value)?, and nothing orders them")
#: The kernel, and what its racy twin is told.
CASES = {}
for sources in (global_race_sources, scope_race_sources, signal_race_sources, shared_race_sources):
    for name, pair in sources.PAIRS.items():
        shared = sources is shared_race_sources or name in SHARED
        race = FaultKind.SHARED_RACE if shared else FaultKind.GLOBAL_RACE
        quick = sources is shared_race_sources
        title = f"{name}, in shared memory" if quick else name
        marks = () if quick else pytest.mark.deep
        kind = FaultKind(OTHERWISE[name]) if name in OTHERWISE else race
        CASES[title] = pytest.param(pair, kind, id=title, marks=marks)


@pytest.mark.parametrize(("pair", "kind"), CASES.values())
def test_what_is_forgotten_is_found_where_the_two_meet(pair, kind):
    source = pair.source(racy=True)
    fault = caught(source, *arrays(), **pair.launch)
    assert fault.kind is kind, fault
    if kind in (FaultKind.SHARED_RACE, FaultKind.GLOBAL_RACE):
        meeting = {number for number, line in enumerate(source.splitlines(), 1) if "// meets" in line}
        others = WHERE.findall(fault.detail)
        assert {fault.source_line, *map(int, others)} <= meeting, fault
        assert others or kind is FaultKind.SHARED_RACE, fault


@pytest.mark.parametrize(("pair", "kind"), CASES.values())
def test_the_right_twin_is_left_alone(pair, kind):
    run_cuda(pair.source(racy=False), *arrays(), **pair.launch)
