# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Divergence, reconvergence, barriers and calls: every thread computes what it would compute alone."""

import numpy as np
import pytest
from executor_harness import run_cuda, run_instruction

from gpuprof.executor import FaultKind, KernelFault

INTS = np.zeros(128, dtype=np.int32)


def test_nested_branches_and_loops_of_different_lengths():
    source = """extern "C" __global__ void k(int *out) {
    int total = 0;
    for (int i = 0; i < (int)threadIdx.x; ++i) {
        if (i % 3 == 0)
            total += i;
        else if (i % 5 == 0) {
            if (threadIdx.x & 1)
                continue;
            total -= 1;
        }
        if (total > 200)
            break;
        for (int j = i; j < 4; ++j)
            total += j;
    }
    out[threadIdx.x] = total;
}"""

    def alone(thread):
        total = 0
        for i in range(thread):
            if i % 3 == 0:
                total += i
            elif i % 5 == 0:
                if thread & 1:
                    continue
                total -= 1
            if total > 200:
                break
            total += sum(range(i, 4))
        return total

    (out,), result = run_cuda(source, INTS, block=(128, 1, 1))
    assert out.array().tolist() == [alone(t) for t in range(128)]
    assert result.counters["branch_divergent_warps"] > 0


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


def test_barriers_in_a_loop_whose_length_differs_between_blocks():
    source = """extern "C" __global__ void k(int *out) {
    __shared__ int tile[64];
    int sum = 0;
    for (int i = 0; i <= (int)blockIdx.x; ++i) {
        tile[threadIdx.x] = threadIdx.x + i;
        __syncthreads();
        sum += tile[63 - threadIdx.x];
        __syncthreads();
    }
    out[blockIdx.x * 64 + threadIdx.x] = sum;
}"""
    (out,), result = run_cuda(source, np.zeros(5 * 64, np.int32), grid=(5, 1, 1), block=(64, 1, 1))
    expected = [[sum(63 - t + i for i in range(b + 1)) for t in range(64)] for b in range(5)]
    assert out.array().reshape(5, 64).tolist() == expected
    assert result.counters["barriers"] == 2 * 2 * (1 + 2 + 3 + 4 + 5)


def test_warps_of_a_block_may_meet_at_different_barrier_instructions():
    source = """extern "C" __global__ void k(int *out) {
    __shared__ int tile[64];
    if (threadIdx.x < 32) {
        tile[threadIdx.x] = threadIdx.x;
        asm volatile("bar.sync 1, 64;" ::: "memory");
        out[threadIdx.x] = tile[threadIdx.x + 32];
    } else {
        tile[threadIdx.x] = 2 * threadIdx.x;
        asm volatile("bar.sync 1, 64;" ::: "memory");
        out[threadIdx.x] = tile[threadIdx.x - 32];
    }
}"""
    (out,), _ = run_cuda(source, INTS, block=(64, 1, 1))
    assert out.array()[:64].tolist() == [2 * (i + 32) for i in range(32)] + list(range(32))


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


def test_predicate_that_changes_within_a_loop_holds_anew_each_time():
    text = """{ .reg .pred p1, q; .reg .b32 n; mov.u32 n, 0; mov.u32 d, 0;
        L: setp.lt.u32 p1, n, a; @p1 add.u32 d, d, 1; @!p1 add.u32 d, d, 100;
        add.u32 n, n, 1; setp.lt.u32 q, n, 8; @q bra L; }"""
    got = run_instruction(text, ("u32",), "u32", [t % 10 for t in range(64)])
    assert got.tolist() == [min(t % 10, 8) + 100 * max(8 - t % 10, 0) for t in range(64)]


@pytest.mark.parametrize("block", [(33, 1, 1), (7, 5, 3), (1, 1, 1), (16, 16, 4)])
def test_thread_and_block_indices(block):
    source = """extern "C" __global__ void k(int *out) {
    int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    out[block * blockDim.x * blockDim.y * blockDim.z + thread] = block * 10000 + thread;
}"""
    threads = block[0] * block[1] * block[2]
    (out,), _ = run_cuda(source, np.zeros(24 * threads, np.int32), grid=(2, 3, 4), block=block)
    expected = [b * 10000 + t for b in range(24) for t in range(threads)]
    assert out.array().tolist() == expected
