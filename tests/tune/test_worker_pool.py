# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A pool of workers: what compiled a stage counts the next one, and nothing is lost in between."""

import time

import pytest
from synthetic_times import TILES

from gpuprof.devices.cards import load_card
from gpuprof.kernels.catalog import load_kernels
from gpuprof.measure import process
from gpuprof.measure.protocol import OpenExecutor
from gpuprof.measure.request import Selection
from gpuprof.problems.problem import Problem
from gpuprof.tuning.space import Wanted, make_space
from gpuprof.tuning.worker_pool import WorkerPool

pytestmark = pytest.mark.deep


def test_workers_that_compiled_count_and_disassemble_several_points_together(monkeypatch):
    started = []
    begin = process.WorkerProcess.__init__

    def begun(self, *arguments):
        started.append(self)
        begin(self, *arguments)

    monkeypatch.setattr(process.WorkerProcess, "__init__", begun)
    device = load_card("h200")
    file = load_kernels(TILES)
    problem = Problem.of(file.operation, (256, 256, 256), "f32", {}, {})
    candidates, _ = make_space([Selection(file.kernels[0])], Wanted(), named=True).allowed(problem, device)
    cases = [one.case for one in candidates[:6]]
    built, counted = {}, {}
    until = time.monotonic() + 240
    with WorkerPool(OpenExecutor(device, 0), 1) as pool:
        assert pool.build(cases, built.__setitem__, until) == 6
        # The process outlives the thread's work of one stage.
        time.sleep(0.3)
        pairs = [(case, built[index]) for index, case in enumerate(cases)]
        assert pool.count(pairs, counted.__setitem__, until) == 6
        assert pool.count(pairs[:1], counted.__setitem__, until) == 1
    assert len(started) == 1
    assert sorted(counted) == list(range(6))
    for measurement in counted.values():
        assert measurement.bounds_reason is None
        # Counted from the machine code.
        assert measurement.executor_counters["warp_instructions"].value
