# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Barriers of a block: that compute, that some threads take, that are crossed in opposite order."""

from pathlib import Path

import numpy as np
import pytest
from cuda_sources import either, kernel_table
from executor_harness import cuda_program, run_cuda

from gpuprof.executor import FaultKind, GlobalMemory, KernelFault, launch

TWINS = kernel_table(Path(__file__).parent / "partial_barriers.cu")


def run(name, *, wrong=False):
    source = either(TWINS[name].text, first=wrong)
    (out,), _ = run_cuda(source, np.zeros(128, np.int32), block=(128, 1, 1))
    return out.array()


@pytest.mark.parametrize("name", TWINS)
def test_race_where_order_is_not_kept_and_none_where_it_is(name):
    run(name)
    with pytest.raises(KernelFault) as caught:
        run(name, wrong=True)
    assert caught.value.kind is FaultKind[TWINS[name].told.get("kind", "SHARED_RACE")]
    assert TWINS[name].told.get("words", "") in caught.value.detail


def test_arrivals_that_ended_their_phase_are_over_behind_a_barrier_of_all():
    assert np.array_equal(run("waiting where one has arrived"), np.arange(128) ^ 96)


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
