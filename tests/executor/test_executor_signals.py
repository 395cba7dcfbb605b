# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Threads that signal to each other: where one thing is forgotten that is found, and its twin left alone."""

import re

import numpy as np
import pytest
import scope_race_sources
import signal_race_sources
from executor_harness import caught, run_cuda
from global_race_sources import N
from signal_race_sources import OTHERWISE

from gpuprof.executor import FaultKind

pytestmark = pytest.mark.deep

PAIRS = {**signal_race_sources.PAIRS, **scope_race_sources.PAIRS}
SHARED = {*signal_race_sources.SHARED, *scope_race_sources.SHARED}
WHERE = re.compile(r" in line (\d+), and nothing orders them")


def arrays():
    values = np.random.default_rng(3).integers(1, 1000, N).astype(np.int32)
    return values, np.zeros(N, np.int32), np.zeros(N, np.int32)


def setting(pair):
    shape = {"grid": (pair.grid, 1, 1), "block": (pair.block, 1, 1)}
    return {"scalars": (pair.n,), "instruction_budget": 100_000, **shape}


@pytest.mark.parametrize("name", PAIRS)
def test_what_is_forgotten_is_found_where_the_two_meet(name):
    source = PAIRS[name].source(racy=True)
    fault = caught(source, *arrays(), **setting(PAIRS[name]))
    race = FaultKind.SHARED_RACE if name in SHARED else FaultKind.GLOBAL_RACE
    assert fault.kind == OTHERWISE.get(name, race)
    if fault.kind is race:
        meeting = {number for number, line in enumerate(source.splitlines(), 1) if "// meets" in line}
        assert {fault.source_line, *map(int, WHERE.findall(fault.detail))} <= meeting, fault


@pytest.mark.parametrize("name", PAIRS)
def test_the_right_twin_is_left_alone(name):
    run_cuda(PAIRS[name].source(racy=False), *arrays(), **setting(PAIRS[name]))
