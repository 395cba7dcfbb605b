# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Barriers of a block that compute, that are crossed in opposite order, and that threads disagree on."""

import numpy as np
import pytest
from executor_harness import cuda_program, run_cuda

from gpuprof.executor import GlobalMemory, KernelFault, launch


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
