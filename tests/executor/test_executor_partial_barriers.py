# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Barriers of a block: that compute, that some threads take, that are crossed in opposite order."""

import numpy as np
import pytest
from executor_harness import cuda_program, run_cuda

from gpuprof.executor import FaultKind, GlobalMemory, KernelFault, launch

HEAD = """static __device__ void sync(int number, int threads) {
    asm volatile("bar.sync %0, %1;" :: "r"(number), "r"(threads) : "memory");
}
static __device__ void arrive(int number, int threads) {
    asm volatile("bar.arrive %0, %1;" :: "r"(number), "r"(threads) : "memory");
}
extern "C" __global__ void k(int *out) {
    __shared__ int tile[128];
    const int t = threadIdx.x, warp = t / 32;
"""
#: What four warps do: right, and what its twin does wrong.
TWINS = {
    "a pair waits for itself": (
        "tile[t] = t; sync(1 + warp / 2, 64); out[t] = tile[t ^ 32];",
        "tile[t] = t; sync(1 + warp / 2, 64); out[t] = tile[t ^ 64];",
    ),
    "all wait where one pair read from the other": (
        "tile[t] = t; sync(1 + warp / 2, 64); __syncthreads(); out[t] = tile[t ^ 64];",
        "tile[t] = t; sync(1 + warp / 2, 64); __syncwarp(); out[t] = tile[t ^ 64];",
    ),
    "warps outside do not wait": (
        "tile[t] = t; if (warp < 2) { sync(1, 64); out[t] = tile[t ^ 32]; } else out[t] = tile[t];",
        "tile[t] = t; if (warp < 2) sync(1, 64); out[t] = tile[127 - t];",
    ),
    "order is passed on": (
        """if (warp == 0) tile[t] = t;
        if (warp < 2) sync(1, 64);
        if (warp == 1 || warp == 2) sync(2, 64);
        if (warp == 2) out[t] = tile[t - 64];""",
        """if (warp == 0) tile[t] = t;
        if (warp < 2) sync(1, 64);
        if (warp == 3 || warp == 2) sync(2, 64);
        if (warp == 2) out[t] = tile[t - 64];""",
    ),
    "a reader must be waited for": (
        """if (warp == 0) tile[t] = t;
        if (warp < 2) { sync(1, 64); if (warp == 1) out[t] = tile[t - 32]; sync(1, 64); }
        if (warp == 0) tile[t] = 5;""",
        """if (warp == 0) tile[t] = t;
        if (warp < 2) { sync(1, 64); if (warp == 1) out[t] = tile[t - 32]; }
        if (warp == 0) tile[t] = 5;""",
    ),
    "who arrives is not ordered with who waits": (
        """if (warp == 0) { tile[t] = t; arrive(3, 64); sync(4, 64); tile[t] = 9; }
        if (warp == 1) { sync(3, 64); out[t] = tile[t - 32]; arrive(4, 64); }""",
        """if (warp == 0) { tile[t] = t; arrive(3, 64); tile[t] = 9; }
        if (warp == 1) { sync(3, 64); out[t] = tile[t - 32]; arrive(4, 64); }
        if (warp == 0) sync(4, 64);""",
    ),
    "what a warp does after it arrived is not ordered by a later arrival of another": (
        """tile[t] = t; __syncthreads();
        if (warp == 1) { out[t] = tile[0]; arrive(3, 96); }
        if (warp == 2) { out[t] = tile[0]; arrive(3, 96); }
        if (warp == 0) { sync(3, 96); tile[t] = 5; }""",
        """tile[t] = t; __syncthreads();
        if (warp == 1) { out[t] = tile[0]; arrive(3, 96); out[t] += tile[0]; }
        if (warp == 2) { out[t] = tile[0]; arrive(3, 96); }
        if (warp == 0) { sync(3, 96); tile[t] = 5; }""",
    ),
    "many rounds": (
        """for (int i = 0; i < 5; ++i) {
            tile[t] = t + i;
            sync(1 + warp / 2, 64);
            out[t] += tile[t ^ 33];
            sync(1 + warp / 2, 64);
        }""",
        """for (int i = 0; i < 5; ++i) {
            tile[t] = t + i;
            sync(1 + warp / 2, 64);
            out[t] += tile[t ^ 33];
        }""",
    ),
    "two teams in turn, then everybody": (
        """tile[t] = t;
        sync(1 + warp / 2, 64);
        const int got = tile[t ^ 32];
        sync(3 + warp % 2, 64);
        __syncthreads();
        tile[t ^ 96] = got;
        __syncthreads();
        out[t] = tile[t];""",
        """tile[t] = t;
        sync(1 + warp / 2, 64);
        const int got = tile[t ^ 32];
        sync(3 + warp % 2, 64);
        tile[t ^ 64] = got;
        out[t] = tile[t ^ 32];""",
    ),
}


def run(body, blocks=2):
    (out,), _ = run_cuda(f"{HEAD}{body}\n}}", np.zeros(128, np.int32), grid=(blocks, 1, 1), block=(128, 1, 1))
    return out


@pytest.mark.parametrize("name", TWINS)
def test_race_where_order_is_not_kept_and_none_where_it_is(name):
    right, wrong = TWINS[name]
    run(right, blocks=1)
    with pytest.raises(KernelFault) as caught:
        run(wrong, blocks=1)
    assert caught.value.kind is FaultKind.SHARED_RACE


ARRIVES = """arrive(4, 128);
tile[t] = t;
{between}
sync(4, 128);
out[t] = tile[t ^ 96];"""


def test_waiting_where_one_has_arrived_is_told():
    with pytest.raises(KernelFault, match="waits at barrier 4, where it has arrived before") as caught:
        run(ARRIVES.format(between=""))
    assert caught.value.kind is FaultKind.BARRIER


def test_arrivals_that_ended_their_phase_are_over_behind_a_barrier_of_all():
    assert np.array_equal(run(ARRIVES.format(between="__syncthreads();")).array(), np.arange(128) ^ 96)


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
