# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Races on global memory: every planted one is found and told in full, and the right twin is left alone.

The rule is the PTX memory model's: overlapping accesses of two threads, one of them a write, are ordered by
causality or both strong with a scope that holds both threads.
"""

import re

import numpy as np
import pytest
from executor_harness import caught, run_cuda
from global_race_sources import PAIRS, N

from gpuprof.executor import FaultKind

WHERE = re.compile(r"which (?:thread \(.*?\)|another thread) of block \(.*?\) .* in line (\d+)")


def arrays():
    values = np.random.default_rng(3).integers(1, 1000, N).astype(np.int32)
    return values, np.zeros(N, np.int32), np.zeros(N, np.int32)


def setting(pair):
    shape = {"grid": (pair.grid, 1, 1), "block": (pair.block, 1, 1)}
    return {"scalars": (pair.n,), "instruction_budget": 100_000, **shape}


@pytest.mark.parametrize("name", PAIRS)
def test_planted_race_is_found_with_both_lines(name):
    pair = PAIRS[name]
    source = pair.source(racy=True)
    fault = caught(source, *arrays(), **setting(pair))
    assert fault.kind is FaultKind.GLOBAL_RACE
    marked = {number for number, line in enumerate(source.splitlines(), 1) if "// meets" in line}
    assert {fault.source_line, int(WHERE.search(fault.detail)[1])} <= marked, fault


@pytest.mark.parametrize("name", PAIRS)
def test_right_twin_is_left_alone(name):
    pair = PAIRS[name]
    run_cuda(pair.source(racy=False), *arrays(), **setting(pair))
