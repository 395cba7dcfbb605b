# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Divergence, reconvergence, barriers and calls: every thread computes what it would compute alone."""

import numpy as np
import pytest
from executor_harness import run_cuda

from gpuprof.executor import FaultKind, KernelFault

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
