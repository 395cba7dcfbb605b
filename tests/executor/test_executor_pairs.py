# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels that are wrong in one way: each fault is found and told, and the right twin is left alone.

Races: the rule is the PTX memory model's. Overlapping accesses of two threads, one of them a write, are
ordered by causality or both strong with a scope that holds both threads. Copies in flight: the PTX ISA does
not order what asynchronous copies write. What is in flight to a place must have landed before that place is
read, written, or copied to again.
"""

import re
from pathlib import Path

import numpy as np
import pytest
from bulk_sources import clustered, cuda
from cuda_sources import either, kernel_table
from executor_harness import caught, cuda_program, line_of, run_cuda, tells
from race_pairs import arrays, pairs

from gpuprof.backends.sim.located import told
from gpuprof.executor import FaultKind

CLUSTERS, COPIES, PROXIES = (
    kernel_table(Path(__file__).parent / f"{name}.cu")
    for name in ("cluster_faults", "copies_in_flight", "proxies")
)
NUMBERS = np.arange(1024, dtype=np.float32)
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
        assert others, fault


@pytest.mark.parametrize(("pair", "kind"), CASES)
def test_the_right_twin_is_left_alone(pair, kind):
    run_cuda(pair.source(racy=False), *arrays(), **pair.launch)


@pytest.mark.parametrize("name", CLUSTERS)
def test_what_is_wrong_in_clusters_is_told(name):
    row = CLUSTERS[name]
    follows = "remark" in row.told
    launch = {"grid": (2, 1, 1), "block": (64, 1, 1), "follow_undefined": follows}
    arguments = np.zeros(128, np.float32)
    if "«" in row.text:
        (out,), result = run_cuda(clustered(either(row.text, first=False)), arguments, **launch)
        if follows:
            assert row.told["remark"] in result.remarks[0]
            np.testing.assert_array_equal(out.array(), [*range(64), *range(64)])
    source = clustered(either(row.text, first=True))
    fault = caught(source, arguments, **launch)
    assert fault.kind is FaultKind[row.told["kind"]]
    words = row.told["words"].replace("COPY", str(line_of(source, "multicast::cluster")))
    assert re.search(words, str(fault)), fault
    planted = row.told.get("line") or ("// planted" if "// planted" in row.text else "")
    assert not planted or fault.source_line == line_of(source, planted)
    for place in ("block", "thread"):
        assert getattr(fault, place) == (*row.told.get(place, getattr(fault, place)),)
    if fault.kind is FaultKind.SHARED_RACE:
        found = str(told(fault, {fault.kernel: cuda_program(source)}, []))
        met, line = line_of(source, row.told.get("met", "// other")), fault.source_line
        where = f"between lines {met} and {line}" if met < line else f"behind line {met}, before line {line}"
        assert re.search(r"of `\w+`", found)
        assert f" in line {met}" in found
        assert f"a barrier of the cluster that orders them is missing {where}" in found


@pytest.mark.parametrize("name", COPIES)
def test_copies_in_flight_to_one_place_are_told_with_both_lines(name):
    kind = FaultKind[COPIES[name].told.get("kind", "ASYNC_COPY")]
    source = cuda(either(COPIES[name].text, first=True))
    fault = caught(source, NUMBERS, np.zeros(128, np.float32))
    assert fault.kind is kind, fault
    if kind is FaultKind.ASYNC_COPY:
        line = int(fault.detail.rpartition(" line ")[2].split()[0])
        started = source.splitlines()[line - 1]
        assert "cp.async" in started or "copy" in started or "load" in started, started
        assert fault.source_line
    right = cuda(either(COPIES[name].text, first=False))
    (_, out), _ = run_cuda(right, NUMBERS, np.full(128, -1, np.float32))
    assert (out.array() != -1).any()


@pytest.mark.parametrize("name", PROXIES)
def test_fences_between_threads_and_the_copy_engine_are_missed(name):
    wrong, right = (cuda(either(PROXIES[name].text, first=first)) for first in (True, False))
    said = PROXIES[name].told
    expected = FaultKind[said["kind"]], said["line"], said["words"]
    given = NUMBERS[:256], np.zeros(256, np.float32)
    fault = tells(wrong, *expected, *given, thread=said["thread"], block=(64, 1, 1))
    assert fault.address == (None if said["address"] < 0 else said["address"])
    (_, out), _ = run_cuda(right, NUMBERS[:256], np.full(256, -1, np.float32), block=(64, 1, 1))
    np.testing.assert_array_equal(out.array(), said["times"] * NUMBERS[:256])
