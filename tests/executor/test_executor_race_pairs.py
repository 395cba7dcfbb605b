# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels that forget one thing: each race is found and told in full, and the right twin is left alone.

The rule is the PTX memory model's: overlapping accesses of two threads, one of them a write, are ordered by
causality or both strong with a scope that holds both threads.
"""

import re

import pytest
from executor_harness import caught, run_cuda
from race_pairs import arrays, pairs

from gpuprof.executor import FaultKind

SHARED, GLOBAL = FaultKind.SHARED_RACE, FaultKind.GLOBAL_RACE
WHERE = re.compile(r" in line (\d+)(?: with another value)?, and nothing orders them")
#: The kernel, and what its racy twin is told; those of shared memory are quick.
CASES = [
    pytest.param(
        pair,
        FaultKind(pair.kind) if pair.kind else SHARED if pair.shared else GLOBAL,
        id=f"{file}: {name}",
        marks=() if file == "shared" else pytest.mark.deep,
    )
    for file in ("global", "scope", "signal", "shared")
    for name, pair in pairs(file).items()
]


@pytest.mark.parametrize(("pair", "kind"), CASES)
def test_what_is_forgotten_is_found_where_the_two_meet(pair, kind):
    source = pair.source(racy=True)
    fault = caught(source, *arrays(), **pair.launch)
    assert fault.kind is kind, fault
    if kind in (SHARED, GLOBAL):
        meeting = {number for number, line in enumerate(source.splitlines(), 1) if "// meets" in line}
        others = WHERE.findall(fault.detail)
        assert {fault.source_line, *map(int, others)} <= meeting, fault
        assert others or kind is SHARED, fault


@pytest.mark.parametrize(("pair", "kind"), CASES)
def test_the_right_twin_is_left_alone(pair, kind):
    run_cuda(pair.source(racy=False), *arrays(), **pair.launch)
