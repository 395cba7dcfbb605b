# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Divergence, reconvergence, loops and calls: every thread computes what it would compute alone."""

import random
from dataclasses import dataclass

import numpy as np
import pytest
from executor_harness import compile_cuda, cuda_program, run_cuda, run_ptx

from gpuprof.executor import FaultKind, GlobalMemory, KernelFault, launch, load_program
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


THREADS = np.zeros(32, np.int32)


def result_of(source: str, *arrays: np.ndarray, **keywords) -> list[int]:
    (out, *_), _ = run_cuda(source, THREADS, *arrays, **keywords)
    return out.array().tolist()


POINTERS = """typedef int (*Operation)(int, int);
__device__ int plus(int a, int b) { return a + b; }
__device__ int times(int a, int b) { return a * b; }
__device__ int less(int a, int b) { return a - b; }
__device__ long long wide(int a, int b) { return 7; }
__device__ Operation table[4] = {plus, times, less, 0};
typedef long long (*Other)(int, int);
__device__ Other other = wide;
"""


def test_a_pointer_to_no_function_is_told_and_not_what_is_no_candidate():
    kernel = """extern "C" __global__ void k(int *out, int *index) {
    Operation chosen = index[0] < 4 ? table[index[0]] : (Operation)other;
    out[threadIdx.x] = chosen(threadIdx.x, 3);
}"""
    assert result_of(POINTERS + kernel, np.array([1], np.int32))[5] == 15
    for index in (3, 4):
        with pytest.raises(KernelFault) as caught:
            run_cuda(POINTERS + kernel, THREADS, np.array([index], np.int32))
        assert caught.value.kind is FaultKind.BAD_TARGET


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


JUMP = """.visible .entry k(.param .u64 k_param_0)
{
    .reg .b32 %r<6>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [k_param_0];
    mov.u32 %r1, %tid.x;
    and.b32 %r2, %r1, 3;
    add.s32 %r2, %r2, SHIFT;
    mov.u32 %r3, 0;
    $L_table: .branchtargets $L_one, $L_two, $L_one, $L_three;
    brx.idx %r2, $L_table;
$L_one:
    mov.u32 %r3, 10;
    bra.uni $L_end;
$L_two:
    mov.u32 %r3, 20;
    bra.uni $L_end;
$L_three:
    mov.u32 %r3, 30;
$L_end:
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r3;
    ret;
}
"""


def test_an_index_behind_the_table_is_told():
    with pytest.raises(KernelFault) as caught:
        run_ptx(JUMP.replace("SHIFT", "1"), THREADS)
    assert caught.value.kind is FaultKind.BAD_TARGET
    assert caught.value.thread == (3, 0, 0)


def test_an_argument_written_in_words_may_be_read_in_bytes():
    ptx = """.func (.param .b32 r) f(.param .align 4 .b8 p[4])
{
    .reg .b16 %rs<3>;
    .reg .b32 %r<4>;
    ld.param.u8 %rs1, [p+1];
    ld.param.u8 %rs2, [p+3];
    cvt.u32.u16 %r1, %rs1;
    cvt.u32.u16 %r2, %rs2;
    mad.lo.s32 %r3, %r2, 1000, %r1;
    st.param.b32 [r], %r3;
    ret;
}
.visible .entry k(.param .u64 k_param_0)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [k_param_0];
    mov.u32 %r1, 0x04030201;
    {
    .param .align 4 .b8 given[4];
    st.param.b32 [given], %r1;
    .param .b32 back;
    call.uni (back), f, (given);
    ld.param.b32 %r2, [back];
    }
    st.global.u32 [%rd1], %r2;
    ret;
}
"""
    (out,), _ = run_ptx(ptx, np.zeros(1, np.int32), block=(1, 1, 1))
    assert out.tolist() == [4002]


BY_REGISTER = """.func (.reg .b32 sum) add(.reg.b32 x,.reg .b32 y)
{
    .const .b32 hundred[2] = { 100, 200 };
    .reg .b64 a;
    .reg .b32 c;
    mov.u64 a, hundred;
    ld.const.b32 c, [a+4];
    add.u32 sum, x, c;
    add.u32 sum, sum, y;
    ret;
}
.visible .entry k(.param.u64 out)
{
    .reg .b64 a;
    .reg .b32 n, tid;
    .reg .v2.b32 pair;
    .reg .pred p;
    ld.param.u64 a, [out];
    mov.u32 tid, %tid.x;
    mov.u32 n, 7;
    ld.global.v2.b32 pair, [a];
    setp.ne.u32 p, tid, 0;
    @p call (n), add, (tid, pair.y);
    mad.wide.u32 a, tid, 4, a;
    st.global.u32 [a+8], n;
    ret;
}
"""
#: As compilers of old write: declared functions end in nothing, and textures are variables.
WITH_PREDICATES = """.global .texref pixels;
.visible .func (.param .b32 r) elsewhere (.param .b32 x)
    .shared .align 4 .b8 held[16];
.visible .func (.reg .pred r) differ (.reg .pred a, .reg .pred b)
{
    xor.pred r, a, b;
    ret;
}
.extern .func nothing (.param .b32 x)
.entry k (.param .u64 out)
{
    .reg .u64 a;
    .reg .u32 n, tid, at;
    .reg .pred p, q, r;
    ld.param.u64 a, [out];
    mov.u32 tid, %tid.x;
    setp.gt.u32 p, tid, 1;
    setp.ne.u32 q, tid, 3;
    setp.eq.u32 r, tid, tid;
    @p call (r), differ, (p, q);
    selp.u32 n, 5, 6, r;
    mov.u32 at, held;
    mad.lo.u32 at, tid, 4, at;
    st.shared.u32 [at], n;
    ld.shared.u32 n, [at];
    mad.wide.u32 a, tid, 4, a;
    st.global.u32 [a], n;
    ret;
}
"""


@pytest.mark.parametrize(
    ("ptx", "expected"),
    [(BY_REGISTER, [10, 11, 7, 212, 213, 214]), (WITH_PREDICATES, [5, 5, 6, 5, 14, 15])],
    ids=["registers", "predicates"],
)
def test_registers_are_passed_and_vectors_and_variables_declared_as_people_write_them(ptx, expected):
    (out,), _ = run_ptx(ptx, np.arange(10, 16, dtype=np.int32), block=(4, 1, 1))
    assert out.tolist() == expected


def test_an_initialiser_in_constant_memory_names_either_of_two_addresses():
    ptx = """.const .align 4 .u32 first = 11;
.const .align 4 .u32 second = 22;
.global .align 8 .u64 where[2] = {generic(second), second};
.visible .entry k(.param .u64 k_param_0)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [k_param_0];
    ld.global.u64 %rd2, [where];
    ld.u32 %r1, [%rd2];
    ld.global.u64 %rd3, [where+8];
    ld.const.u32 %r2, [%rd3];
    add.u32 %r3, %r1, %r2;
    st.global.u32 [%rd1], %r3;
    ret;
}
"""
    (out,), _ = run_ptx(ptx, np.zeros(1, np.int32), block=(1, 1, 1))
    assert out.tolist() == [44]


def test_no_pointer_fits_is_named():
    program = cuda_program("""extern "C" __global__ void k(int *out, int (*f)(int)) {
    if (out[0]) out[0] = f(1);
}""")
    assert program.unmodelled == (("call of a function pointer that no function fits", 2),)
