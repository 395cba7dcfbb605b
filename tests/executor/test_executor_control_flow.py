# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Divergence, reconvergence, loops and calls: every thread computes what it would compute alone."""

import random
from dataclasses import dataclass

import numpy as np
import pytest
from executor_harness import compile_cuda, cuda_program, run_cuda

from gpuprof.executor import FaultKind, GlobalMemory, KernelFault, launch, load_program
from gpuprof.executor.program.flow import EXIT_BLOCK, common_end
from gpuprof.executor.program.loops import loops_of

INTS = np.zeros(128, dtype=np.int32)


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


@pytest.mark.parametrize("seed", range(4))
def test_lanes_wait_in_each_iteration_for_all_that_have_not_left_the_loop(seed):
    source = """extern "C" __global__ void k(const int *x, int *out, int n) {
    int s = threadIdx.x;
    for (int i = 0; i < n; ++i) {
        const int v = x[s];
        if (v & 1) {
            s = x[s + 64];
            if (s % 8 == 5) break;
        }
        s ^= x[v + 128];
    }
    out[threadIdx.x] = s;
}"""
    x = np.random.default_rng(seed).integers(64, size=192, dtype=np.int32)
    expected, requests, inside = np.arange(32), 0, np.ones(32, np.bool_)
    for _ in range(20):
        if not inside.any():
            break
        v = x[expected]
        odd = inside & (v % 2 == 1)
        expected = np.where(odd, x[expected + 64], expected)
        inside = inside & ~(odd & (expected % 8 == 5))
        expected = np.where(inside, expected ^ x[v + 128], expected)
        requests += 1 + int(odd.any()) + int(inside.any())
    (_, out), result = run_cuda(source, x, np.zeros(32, np.int32), scalars=(20,), block=(32, 1, 1))
    assert out.array().tolist() == expected.tolist()
    assert result.counters["global_load_requests"] == requests


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


THREADS = np.zeros(32, np.int32)


POINTERS = """typedef int (*Operation)(int, int);
__device__ int plus(int a, int b) { return a + b; }
__device__ int times(int a, int b) { return a * b; }
__device__ int less(int a, int b) { return a - b; }
__device__ long long wide(int a, int b) { return 7; }
__device__ Operation table[4] = {plus, times, less, 0};
typedef long long (*Other)(int, int);
__device__ Other other = wide;
"""


def test_a_kernel_keeps_pointers_that_another_made():
    source = (
        POINTERS
        + """__device__ Operation chosen;
extern "C" __global__ void choose(int *out) { chosen = table[1]; }
extern "C" __global__ void use(int *out) { out[threadIdx.x] = chosen(threadIdx.x, 5); }"""
    )
    ptx = compile_cuda(source)
    memory = GlobalMemory()
    out = memory.allocate(THREADS, "out")
    for name, threads in (("choose", 1), ("use", 32)):
        launch(load_program(ptx, name), (1, 1, 1), (threads, 1, 1), [out], memory)
    assert out.array().tolist() == [5 * t for t in range(32)]


def test_no_constant_lies_where_a_function_does():
    source = """__constant__ int numbers[64] = {1};
extern "C" __global__ void k(int *out, int n) {
    out[0] = numbers[n] + *(volatile int *)(void *)table[n];
}"""
    with pytest.raises(KernelFault) as caught:
        run_cuda(POINTERS + source, INTS, scalars=(0,), block=(1, 1, 1))
    assert caught.value.kind is FaultKind.OUT_OF_BOUNDS


def test_no_pointer_fits_is_named():
    program = cuda_program("""extern "C" __global__ void k(int *out, int (*f)(int)) {
    if (out[0]) out[0] = f(1);
}""")
    assert program.unmodelled == (("call of a function pointer that no function fits", 2),)
