# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Before which end of a kernel lanes meet: what ptxas chose, read off BSSY and BSYNC in its machine code."""

import numpy as np
import pytest
from executor_harness import run_cuda

from gpuprof.executor.program.flow import common_end

#: A loop that is left in the middle of every round (to 4) and after its rounds (to 3).
LOOP = [(3, 1), (4, 2), (1, 3), (-1,), (-1,)]


def chosen(successors, ends, **work):
    """The end that lanes meet before, where each block named `bN` has some instructions."""
    opcodes = [["add"] * work.get(f"b{i}", 1) for i in range(len(successors))]
    return common_end(successors, ends, opcodes)


def test_one_end_and_none():
    assert chosen([(1,), (-1,)], [1]) == 1
    assert chosen([(0,)], []) is None


def test_the_end_that_most_ways_lead_to():
    if_return = [(3, 1), (2, 3), (-1,), (-1,)]
    assert chosen(if_return, [2, 3], b2=20) == 3


@pytest.mark.parametrize(("middle", "after", "expected"), [(9, 1, 4), (5, 5, 4), (1, 9, 3)])
def test_of_two_ends_that_a_loop_leaves_for_the_one_with_more_to_do(middle, after, expected):
    assert chosen(LOOP, [3, 4], b4=middle, b3=after) == expected
    with_a_way_to = [(3, 1), (4, 2), (1, 3), (-1,), (5,), (-1,)]
    assert chosen(with_a_way_to, [3, 5], b4=middle, b3=after) == (5 if expected == 4 else 3)


def test_not_where_only_some_rounds_pass_the_branch_or_a_loop_is_inside():
    under_an_if = [(4, 1), (3, 2), (5, 3), (1, 4), (-1,), (-1,)]
    assert chosen(under_an_if, [4, 5], b5=20) == 4
    around_a_loop = [(4, 1), (1, 2), (5, 3), (1, 4), (-1,), (-1,)]
    assert chosen(around_a_loop, [4, 5], b5=20) == 4


def test_stores_of_lanes_that_leave_a_loop_are_counted_as_lanes_meet():
    """Lane i leaves in round i, with all the others that do, or ends after i rounds, by itself."""
    source = """extern "C" __global__ void k(const int *in, int *out) {
    const int t = threadIdx.x, rounds = t & 3;
    int a = in[t];
    #pragma unroll 1
    for (int i = 0; i < rounds; ++i) {
        if (a > 100) {
            ((int4 *)out)[t] = make_int4(a * 7 ^ 5, a / 3, a % 11, a ^ 3);
            return;
        }
        a += in[t + a];
    }
    out[4 * t] = a;
}"""
    values = np.zeros(160, dtype=np.int32)
    _, result = run_cuda(source, values, np.zeros(128, np.int32))
    assert result.counters["global_store_requests"] == 4
    values[:32] = 101
    _, result = run_cuda(source, values, np.zeros(128, np.int32))
    assert result.counters["global_store_requests"] == 2
