# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Special registers: those that cards agree on, and those that stand for time and place."""

import numpy as np
import pytest
from executor_harness import run_cuda

from gpuprof.executor.program.slots import KNOWN_SPECIALS
from gpuprof.executor.steps.batch import Geometry
from gpuprof.executor.steps.special_registers import Surroundings


def surroundings(grid=(1, 1, 1), cluster=None, architecture=90, multiprocessors=132) -> Surroundings:
    return Surroundings(Geometry(grid, (32, 1, 1)), cluster, architecture, 0, 0, multiprocessors)


def test_every_register_that_is_known_has_a_value():
    around = surroundings()
    # Where the barrier of a whole grid lies, the launch says.
    told = around.of_launch().keys() | around.of_blocks(np.zeros((1, 3), int)).keys()
    assert told | {"%envreg1", "%envreg2"} == KNOWN_SPECIALS


def test_blocks_know_their_cluster():
    around = surroundings((4, 6, 2), (2, 3, 1))
    launch = around.of_launch()
    assert [launch[f"%nclusterid.{axis}"] for axis in "xyz"] == [2, 2, 2]
    assert launch["%cluster_nctarank"] == 6
    found = around.of_blocks(np.array([[3, 4, 1], [0, 0, 0], [2, 5, 0]]))
    assert found["%clusterid.x"].tolist() == [1, 0, 1]
    assert found["%clusterid.y"].tolist() == [1, 0, 1]
    assert found["%cluster_ctaid.y"].tolist() == [1, 0, 2]
    assert found["%cluster_ctarank"].tolist() == [3, 0, 4]


@pytest.mark.parametrize(("architecture", "warps"), [(75, 32), (80, 64), (86, 48), (89, 48), (90, 64)])
def test_warps_of_a_multiprocessor(architecture, warps):
    assert surroundings(architecture=architecture).of_launch()["%nwarpid"] == warps


def test_a_loop_that_waits_for_a_time_ends_and_says_whose_time_it_is():
    source = """extern "C" __global__ void k(long long *out) {
    const long long start = clock64();
    long long now = start;
    while (now - start < 10000000)
        now = clock64();
    out[0] = now - start;
}"""
    (out,), result = run_cuda(source, np.zeros(1, np.int64), block=(1, 1, 1))
    assert out.array()[0] >= 10_000_000
    assert result.lane_instructions < 100_000
    assert result.remarks == ("%clock64: instructions were counted, not time of the card",)


def test_blocks_are_dealt_out_in_turn():
    source = """extern "C" __global__ void k(unsigned *out) {
    asm volatile("mov.u32 %0, %%smid;" : "=r"(out[blockIdx.x]));
}"""
    (out,), result = run_cuda(
        source, np.zeros(5, np.uint32), grid=(5, 1, 1), block=(1, 1, 1), multiprocessors=3
    )
    assert out.array().tolist() == [0, 1, 2, 0, 1]
    assert result.remarks == ("%smid: the executor's own; a card deals out blocks otherwise",)
    (_,), result = run_cuda(source.replace("smid", "ctaid.x"), np.zeros(5, np.uint32), grid=(5, 1, 1))
    assert result.remarks == ()
