# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Loops that mbarriers order: their accesses are judged once, and what differs in a late round is found."""

import numpy as np
import pytest
from bulk_sources import cuda
from executor_harness import caught, line_of, run_cuda

from gpuprof.executor import FaultKind
from gpuprof.executor.observers import races
from gpuprof.executor.observers.phased_races import PhasedInterval

#: Two stages: in each round a warp writes one that the other warp has read, and the other way round.
ROUNDS = """extern "C" __global__ void k(int *out, int rounds, int wrong) {
    __shared__ int stage[2][2][32];
    __shared__ u64 turned;
    const int t = threadIdx.x, warp = t / 32, lane = t % 32;
    if (t == 0) { init(&turned, 64); fence(); }
    __syncthreads();
    int sum = 0;
    for (int i = 0; i < rounds; ++i) {
        stage[i % 2][warp][lane] = i + t;
        arrive_sink(&turned, 1);
        if (i != wrong)
            wait(&turned, i % 2);
        sum += stage[i % 2][1 - warp][lane]; // what the other warp wrote
    }
    out[t] = sum;
}"""


@pytest.fixture
def judged(monkeypatch):
    """How many entries of the log were judged one by one."""
    counts = {"entries": 0}
    real = PhasedInterval.replay

    def replay(self, log, blocks):
        counts["entries"] += len(log)
        real(self, log, blocks)

    monkeypatch.setattr(PhasedInterval, "replay", replay)
    return counts


def expected(rounds):
    other = (np.arange(64) + 32) % 64
    return sum(i + other for i in range(rounds))


def test_a_loop_is_judged_for_a_few_rounds_only(judged):
    source = cuda(ROUNDS)
    (out,), _ = run_cuda(source, np.zeros(64, np.int32), scalars=(100, -1), block=(64, 1, 1))
    np.testing.assert_array_equal(out.array(), expected(100))
    after_100 = judged["entries"]
    (out,), _ = run_cuda(source, np.zeros(64, np.int32), scalars=(1000, -1), block=(64, 1, 1))
    np.testing.assert_array_equal(out.array(), expected(1000))
    assert judged["entries"] - after_100 < after_100 + 2 * races.LEAST_PIECE


@pytest.mark.parametrize("wrong", [3, 57, 411])
def test_a_wait_left_out_in_a_late_round_is_found(wrong):
    source = cuda(ROUNDS)
    fault = caught(source, np.zeros(64, np.int32), scalars=(500, wrong), block=(64, 1, 1))
    assert fault.kind is FaultKind.SHARED_RACE
    assert fault.source_line == line_of(source, "what the other warp wrote")


def test_it_is_found_also_where_no_state_is_kept(monkeypatch):
    monkeypatch.setattr(races, "_KEPT_BYTES", 0)
    source = cuda(ROUNDS)
    (out,), _ = run_cuda(source, np.zeros(64, np.int32), scalars=(300, -1), block=(64, 1, 1))
    np.testing.assert_array_equal(out.array(), expected(300))
    assert caught(source, np.zeros(64, np.int32), scalars=(300, 250), block=(64, 1, 1)).kind is (
        FaultKind.SHARED_RACE
    )


def test_blocks_that_do_the_same_are_judged_as_one(judged):
    source = cuda(ROUNDS)
    run_cuda(source, np.zeros(64, np.int32), scalars=(200, -1), block=(64, 1, 1))
    one = judged["entries"]
    racy = source.replace("out[t] = sum;", "atomicAdd(&out[t], sum);")
    (out,), _ = run_cuda(racy, np.zeros(64, np.int32), scalars=(200, -1), grid=(5, 1, 1), block=(64, 1, 1))
    np.testing.assert_array_equal(out.array(), 5 * expected(200))
    assert judged["entries"] == 2 * one
