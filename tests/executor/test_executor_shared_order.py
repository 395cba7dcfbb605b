# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Shared memory ordered by more than barriers: what is judged, once if it repeats, and what is told."""

import numpy as np
import pytest
from bulk_sources import cuda
from executor_harness import KERNELS_BY_HAND, caught, cuda_program, line_of, run_cuda
from race_pairs import arrays, pairs

from gpuprof.executor import FaultKind
from gpuprof.executor.observers import race_detector
from gpuprof.executor.observers.phased_races import PhasedInterval

PAIRS = pairs("shared")


def test_a_lock_of_shared_memory_loses_nothing():
    pair = PAIRS["lock left out, within a warp"]
    text = pair.source(racy=False).rstrip().removesuffix("}")
    text += "    __syncthreads();\n    out[t] = out[128 + t] = sum;\n}\n"
    (*_, out), _ = run_cuda(text, *arrays(), **pair.launch)
    assert (out.array()[:512] == sum(range(32))).all()


@pytest.mark.parametrize(
    ("body", "ordered"),
    [
        ("tile[t] = t; __syncthreads(); out[t] = tile[t ^ 1];", False),
        ("tile[t] = t; __syncwarp(); out[t] = tile[t ^ 1];", False),
        (
            "tile[t] = 0; __syncthreads(); atomicAdd(&tile[t / 2], 1); __syncthreads(); out[t] = tile[t];",
            False,
        ),
        ("*(volatile int *)out = 1;", False),
        ("*(volatile int *)&tile[t] = t;", True),
        ("tile[t] = t; __syncwarp(out[t]);", True),
        ("tile[t] = 0; __threadfence_block(); out[t] = atomicAdd(&tile[t], 1);", True),
        ('tile[t] = t; asm volatile("bar.sync 1, 64;" ::: "memory"); out[t] = tile[t ^ 1];', False),
    ],
)
def test_only_kernels_with_other_means_of_order_are_judged_access_by_access(body, ordered):
    text = f"""extern "C" __global__ void k(int *out) {{
    __shared__ int tile[64];
    const int t = threadIdx.x;
    {body}
}}"""
    assert cuda_program(text).means.in_shared is ordered


def test_a_race_names_line_and_thread_of_both():
    pair = PAIRS["flag without a fence"]
    text = pair.source(racy=True)
    fault = caught(text, *arrays(), **pair.launch)
    assert (fault.thread, fault.block, fault.address) == ((0, 0, 0), (0, 0, 0), 128)
    assert fault.source_line == line_of(text, "out[0] = tile[32]")
    assert fault.detail == (
        "reads byte 128 of shared memory, which thread (32, 0, 0) of block (0, 0, 0) writes in line"
        f" {line_of(text, 'tile[t] = out[t]')}, and nothing orders them"
    )


@pytest.mark.parametrize(
    ("stores", "lucky"),
    [
        ("word = 7;", False),
        ("word = 5; __syncwarp(); word = 7;", False),
        ("word = 7; __syncwarp(); if (lane == 0) word = 7;", False),
        ("if (out[threadIdx.x] == 1) word = 3; word = 7;", False),  # nobody makes the first one
        ("if (lane == 0) word = 7;", True),
        ("if (lane < 31) word = 7;", True),
        ("word = 5; word = 7;", True),  # where one lane is an instruction behind the others
        ("word = 5; __syncwarp(); atomicExch((int *)&word, 7);", False),
        ("word = 5; __syncwarp(); out[threadIdx.x] = word; word = 7; __syncwarp();", True),
        ("word = 5; __syncwarp(); out[threadIdx.x] = word; __syncwarp(); word = 7; __syncwarp();", False),
    ],
)
def test_what_all_lanes_store_alike_is_no_luck_to_read(stores, lucky):
    text = f"""extern "C" __global__ void k(int *out) {{
    __shared__ volatile int word;
    const int lane = threadIdx.x % 32;
    {stores}
    out[threadIdx.x] = word;
}}"""
    (out,), result = run_cuda(text, np.zeros(64, np.int32), block=(64, 1, 1))
    assert (out.array()[:64] == 7).all()
    assert [remark[:10] for remark in result.remarks] == ["undefined:"] * lucky


ROUNDS = KERNELS_BY_HAND["rounds of two warps"].text


@pytest.fixture
def judged(monkeypatch):
    """How many entries of the log were judged one by one."""
    counts = {"entries": 0}
    real = PhasedInterval.replay

    def replay(self, log):
        counts["entries"] += len(log)
        real(self, log)

    monkeypatch.setattr(PhasedInterval, "replay", replay)
    return counts


def expected(rounds):
    other = (np.arange(64) + 32) % 64
    return sum(i + other for i in range(rounds))


@pytest.mark.parametrize("before", ["", "__syncwarp(lane < 16 ? 0xffff : 0xffff0000);"])
def test_a_loop_is_judged_for_a_few_rounds_only(judged, before):
    source = cuda(ROUNDS.replace("arrive_sink", f"{before} arrive_sink"))
    (out,), _ = run_cuda(source, np.zeros(64, np.int32), scalars=(100, -1), block=(64, 1, 1))
    np.testing.assert_array_equal(out.array(), expected(100))
    after_100 = judged["entries"]
    (out,), _ = run_cuda(source, np.zeros(64, np.int32), scalars=(1000, -1), block=(64, 1, 1))
    np.testing.assert_array_equal(out.array(), expected(1000))
    assert judged["entries"] - after_100 < after_100 + 2 * race_detector.LEAST_PIECE


@pytest.mark.parametrize("wrong", [3, 57, 411])
def test_a_wait_left_out_in_a_late_round_is_found(wrong):
    source = cuda(ROUNDS)
    fault = caught(source, np.zeros(64, np.int32), scalars=(500, wrong), block=(64, 1, 1))
    assert fault.kind is FaultKind.SHARED_RACE
    assert fault.source_line == line_of(source, "what the other warp wrote")


def test_it_is_found_also_where_no_state_is_kept(monkeypatch):
    monkeypatch.setattr(race_detector, "_KEPT_BYTES", 0)
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
