# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Barriers of a block that compute, that are crossed in opposite order, and that threads disagree on."""

import numpy as np
import pytest
from executor_harness import cuda_program, run_cuda

from gpuprof.executor import FaultKind, GlobalMemory, KernelFault, launch

VOTES = """extern "C" __global__ void k(int *out, const int *in) {
    const int t = threadIdx.x;
    for (int i = 0; i < 3; ++i) {
        const int yes = in[i * blockDim.x + t];
        const int count = __syncthreads_count(yes);
        const int all = __syncthreads_and(yes), any = __syncthreads_or(yes);
        out[(blockIdx.x * 3 + i) * blockDim.x + t] = 4 * count + 2 * (all != 0) + (any != 0);
    }
}"""


@pytest.mark.parametrize("threads", [32, 40, 96, 1024])
def test_votes_of_a_block(threads):
    given = np.array([np.arange(threads) % 3 == 0, np.ones(threads), np.zeros(threads)], np.int32)
    out = np.zeros((2, 3, threads), np.int32)
    (out, _), result = run_cuda(VOTES, out, given, block=(threads, 1, 1), grid=(2, 1, 1))
    stated = [4 * int(row.sum()) + 2 * int(row.all()) + int(row.any()) for row in given]
    assert (out.array() == np.array(stated)[None, :, None]).all()
    assert result.counters["barriers"] == 2 * 9 * -(-threads // 32)


def test_lanes_that_have_ended_have_no_vote():
    source = """extern "C" __global__ void k(int *out) {
    if (threadIdx.x % 4 == 0)
        return;
    out[threadIdx.x] = __syncthreads_count(1) * 10 + (__syncthreads_and(threadIdx.x % 4) != 0);
}"""
    (out,), _ = run_cuda(source, np.full(64, -1, np.int32), block=(64, 1, 1))
    assert out.array().tolist() == [-1 if t % 4 == 0 else 481 for t in range(64)]


def test_votes_keep_the_registers_of_other_warps():
    """Two pairs of warps count at barriers of their own, one pair twice before the other."""
    source = """extern "C" __global__ void k(int *out) {
    int count = -7;
    const int pair = threadIdx.x / 64;
    for (int i = 0; i <= pair; ++i)
        asm volatile("{ .reg .pred p; setp.gt.u32 p, %1, 10; bar.red.popc.u32 %0, %2, 64, p; }"
                     : "=r"(count) : "r"(threadIdx.x % 64 + i * 20), "r"(pair + 1) : "memory");
    out[threadIdx.x] = count;
}"""
    (out,), _ = run_cuda(source, np.zeros(128, np.int32), block=(128, 1, 1))
    assert out.array().tolist() == [53] * 64 + [64] * 64


def test_what_a_vote_gives_is_defined():
    source = """extern "C" __global__ void k(int *out) {
    __shared__ int never[32];
    int count = never[threadIdx.x];
    count = __syncthreads_count(threadIdx.x < 5);
    out[threadIdx.x] = count;
}"""
    (out,), _ = run_cuda(source, np.zeros(32, np.int32), follow_undefined=True)
    assert out.array().tolist() == [5] * 32


CROSSED = """extern "C" __global__ void k(int *out) {
    __shared__ int words[128];
    const int t = threadIdx.x;
    %s
    if (t < 64) {
        asm volatile("bar.arrive 1, 128;" ::: "memory");
        %s
        asm volatile("bar.sync 2, 128;" ::: "memory");
    } else {
        asm volatile("bar.arrive 2, 128;" ::: "memory");
        asm volatile("bar.sync 1, 128;" ::: "memory");
    }
    out[t] = words[t ^ 64];
}"""


def test_what_is_written_after_an_arrival_is_not_ordered_by_it():
    source = CROSSED % ("if (t >= 64) words[t] = t;", "words[t] = t;")
    with pytest.raises(KernelFault) as caught:
        run_cuda(source, np.zeros(128, np.int32), block=(128, 1, 1))
    assert caught.value.kind is FaultKind.SHARED_RACE


@pytest.mark.parametrize(
    ("first", "second"), [("bar.sync 1, 64", "bar.sync 1, 128"), ("bar.sync 0", "barrier.sync 0, 128")]
)
def test_threads_that_disagree_on_a_count(first, second):
    source = f"""extern "C" __global__ void k(int *out) {{
    if (threadIdx.x < 64)
        asm volatile("{first};" ::: "memory");
    else
        asm volatile("{second};" ::: "memory");
    out[threadIdx.x] = 1;
}}"""
    program = cuda_program(source)
    memory = GlobalMemory()
    out = memory.allocate(np.zeros(128, np.int32), "out")
    with pytest.raises(KernelFault, match=r"comes to barrier [01] for .*, where others wait for"):
        launch(program, (1, 1, 1), (128, 1, 1), [out], memory)


def test_counts_may_change_from_one_round_to_the_next():
    source = """extern "C" __global__ void k(int *out) {
    if (threadIdx.x < 64)
        asm volatile("bar.sync 1, 64;" ::: "memory");
    __syncthreads();
    asm volatile("bar.sync 1, 128;" ::: "memory");
    out[threadIdx.x] = 1;
}"""
    (out,), _ = run_cuda(source, np.zeros(128, np.int32), block=(128, 1, 1))
    assert out.array().all()
