# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Divergence, reconvergence, loops and calls: every thread computes what it would compute alone."""

import random
from dataclasses import dataclass

import numpy as np
import pytest
from executor_harness import run_cuda

from gpuprof.executor import FaultKind, KernelFault
from gpuprof.executor.program.flow import EXIT_BLOCK, common_end
from gpuprof.executor.program.loops import loops_of

INTS = np.zeros(128, dtype=np.int32)


def test_diverged_lanes_meet_again_and_share_one_request():
    source = """extern "C" __global__ void k(int *out, const int *in, int *other) {
    int value = in[threadIdx.x];
    if (value & 1)
        other[threadIdx.x] = 1;   // half of the warp
    else
        reinterpret_cast<short *>(other)[2 * threadIdx.x] = in[threadIdx.x + 32];
    out[threadIdx.x] = value;     // all of it
}"""
    numbers = np.arange(64, dtype=np.int32)
    (out, _, other), result = run_cuda(source, INTS, numbers, INTS)
    assert out.array()[:32].tolist() == list(range(32))
    assert other.array()[:32].tolist() == [1 if i & 1 else i + 32 for i in range(32)]
    assert result.counters["branch_divergent_warps"] == 1
    last = result.lines[7]
    assert (last["global_store_requests"], last["global_store_sectors"]) == (1, 4)
    assert result.lines[4]["global_store_requests"] == 1
    assert result.lines[4]["global_store_efficiency_pct"] == 50.0
    assert result.lines[6]["global_store_efficiency_pct"] == 25.0


@pytest.mark.parametrize(
    ("number", "count", "text"),
    [
        (16, 64, "uses barrier 16, but a block has 16, from 0"),
        (20, 64, "uses barrier 20"),
        (1, 48, "waits at a barrier for 48 threads, which are not whole warps"),
        (1, 0, "waits at a barrier for 0 threads"),
    ],
)
def test_barriers_that_do_not_exist(number, count, text):
    source = """extern "C" __global__ void k(int *out, int number, int count) {
    asm volatile("bar.sync %0, %1;" :: "r"(number), "r"(count) : "memory");
}"""
    with pytest.raises(KernelFault, match=text) as caught:
        run_cuda(source, INTS, scalars=(number, count), block=(64, 1, 1))
    assert caught.value.kind is FaultKind.BARRIER


def test_one_block_passes_a_barrier_that_another_does_not_reach_yet():
    """Block 1's first warp waits for what block 0 writes behind the barrier."""
    source = """extern "C" __global__ void k(volatile int *flag, int *count) {
    if (blockIdx.x == 1 && threadIdx.x < 32)
        while (flag[0] == 0)
            ;
    __syncthreads();
    atomicAdd(&count[blockIdx.x * 96 + threadIdx.x], 1);
    __threadfence();
    __syncthreads();
    if (blockIdx.x == 0 && threadIdx.x == 40)
        flag[0] = 1;
}"""
    (_, count), result = run_cuda(
        source, np.zeros(1, np.int32), np.zeros(192, np.int32), grid=(2, 1, 1), block=(96, 1, 1)
    )
    assert count.array().tolist() == [1] * 192
    assert result.counters["barriers"] == 2 * 2 * 3


def test_warps_of_an_inner_branch_go_on_to_the_join_around_it():
    source = """extern "C" __global__ void k(int *out) {
    __shared__ int tile[32];
    const int t = threadIdx.x;
    if (t < 96) {
        if (t < 32) {
            asm volatile("bar.sync 1, 64;" ::: "memory");
            out[t] = tile[t];
        }
        if (t >= 64) {
            tile[t - 64] = t;
            asm volatile("bar.sync 1, 64;" ::: "memory");
        }
        out[t] += 1000;
    }
    __syncthreads();
    out[t] += 1;
}"""
    (out,), _ = run_cuda(source, INTS, block=(128, 1, 1))
    assert out.array().tolist() == [1065 + t for t in range(32)] + [1001] * 64 + [1] * 32


def test_branches_on_a_predicate_that_does_not_hold():
    source = """extern "C" __global__ void k(int *out, int limit) {
    int r = 7;
    asm volatile("{ .reg .pred p; setp.lt.s32 p, %1, %2; @!p bra skip; add.s32 %0, %0, 100; skip: "
                 "add.s32 %0, %0, 1; }" : "+r"(r) : "r"((int)threadIdx.x), "r"(limit));
    out[threadIdx.x] = r;
}"""
    for limit in (0, 20, 64):
        (out,), result = run_cuda(source, np.zeros(64, np.int32), scalars=(limit,), block=(64, 1, 1))
        assert out.array().tolist() == [108 if t < limit else 8 for t in range(64)]
        assert result.counters["branch_divergent_warps"] == (limit == 20)


@dataclass
class Node:
    """A basic block of which only its successors matter."""

    successors: tuple[int, ...]


def graph(seed):
    """Up to twelve blocks, most of which go on to the next one."""
    rng = random.Random(seed)
    count = rng.randint(1, 12)

    def goal(after):
        chance = rng.random()
        if chance < 0.5 and after < count:
            return after
        return rng.randrange(count) if chance < 0.85 else EXIT_BLOCK

    return [Node(tuple(goal(i + 1) for _ in range(rng.randint(1, 2)))) for i in range(count)]


def reached(blocks, start, inside, without=None):
    """The blocks that control gets to from behind a block, within some and past one."""
    found, pending = set(), [start]
    while pending:
        for after in blocks[pending.pop()].successors:
            if after in inside and after != without and after not in found:
                found.add(after)
                pending.append(after)
    return found


@pytest.mark.parametrize("seeds", range(0, 300, 50))
def test_loops_are_as_their_definitions_say(seeds):
    turns = 0
    for seed in range(seeds, seeds + 50):
        blocks = graph(seed)
        for header, loop in loops_of(blocks).items():
            last = {number for number in loop.body if header in blocks[number].successors}
            for number in loop.body - {header}:
                left = {header, *reached(blocks, header, loop.body - {header}, without=number)}
                assert (number in loop.each_iteration) is left.isdisjoint(last - {number}), (
                    seed,
                    header,
                    number,
                )
            assert header in loop.each_iteration
            turns += len(loop.body)
    assert turns > 100


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
