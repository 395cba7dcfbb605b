# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Every lane goes on, whoever else waits in a loop: locks, flags, barriers of a grid; and what never ends."""

import numpy as np
import pytest
from executor_harness import cuda_program, run_cuda

pytestmark = pytest.mark.deep


def test_who_stores_before_it_waits_wakes_those_that_wait_for_that():
    # Without loops of its own around the waits, each block does all between two of them at once.
    tell = 'asm volatile("st.release.gpu.global.u32 [%%0], %d;" ::"l"(flags + %d) : "memory");'
    wait = "while (*(volatile unsigned *)(flags + %d) < %d) ;"
    turns = range(1, 6)
    ping = "\n".join(tell % (k, 0) + wait % (1, k) for k in turns)
    pong = "\n".join(wait % (0, k) + tell % (k, 1) for k in turns)
    source = f"""extern "C" __global__ void k(unsigned *flags) {{
    if (threadIdx.x == 0 && blockIdx.x == 0) {{ {ping} }}
    if (threadIdx.x == 0 && blockIdx.x == 1) {{ {pong} }}
}}"""
    (flags,), _ = run_cuda(source, np.zeros(2, np.uint32), grid=(2, 1, 1))
    assert flags.array().tolist() == [5, 5]


def test_lanes_that_part_while_they_poll_let_those_go_on_that_they_wait_for():
    source = """extern "C" __global__ void k(int *lock, volatile int *sum) {
    const int mine = atomicAdd(lock, 1);
    for (int served; (served = *(volatile int *)(lock + 1)) != mine;)
        if ((served ^ mine) & 1) __nanosleep(20);
    *sum += threadIdx.x;
    __threadfence();
    *(volatile int *)(lock + 1) = mine + 1;
}"""
    (lock, total), _ = run_cuda(source, np.zeros(2, np.int32), np.zeros(1, np.int32), block=(40, 1, 1))
    assert (lock.array().tolist(), total.array()[0]) == ([40, 40], 40 * 39 // 2)


ENTERED_IN_ITS_MIDDLE = """for (; n > 0; --n) asm volatile("{ .reg .pred p; .reg .b32 v; bra TEST; WAIT:"
" nanosleep.u32 50; TEST: ld.acquire.gpu.b32 v, [%0]; setp.eq.b32 p, v, 0; @p bra WAIT; }" :: "l"(sum));"""


@pytest.mark.parametrize(
    ("loop", "waits"),
    [
        ("while (flag[0] == 0) ;", True),
        (ENTERED_IN_ITS_MIDDLE, True),
        ("while (atomicCAS(sum, 0, 1) != 0) ;", True),
        ("bool done = false; while (!done) if (atomicCAS(sum, 0, 1) == 0) done = true;", True),
        ("while (*sum != n) __threadfence();", True),
        ("for (int i = 0; i < n && flag[0] == 0; ++i) ;", True),
        ("for (int i = 0; i < n; ++i) atomicOr(sum + 1, i);", False),
        ("for (int i = t; i < n; i += 32) atomicAdd(sum + flag[i], 1);", False),
        ("for (int i = 0; i < n; ++i) if (flag[i]) sum[i] = 3;", False),
        ("for (int i = 0; i < n; ++i) if (atomicAdd(sum + i, 1) == 3) sum[n] = i;", False),
        ("for (int i = 0; i < n; ++i) { sum[i] = i; __threadfence(); }", False),
    ],
)
def test_only_loops_that_others_can_end_are_watched(loop, waits):
    program = cuda_program(f"""extern "C" __global__ void k(volatile int *flag, int *sum, int n) {{
    const int t = threadIdx.x;
    #pragma unroll 1
    {loop}
    sum[t] = t;
}}""")
    headers = {header for block in program.blocks for header in block.back_edges}
    assert bool(headers) is waits
    assert headers <= program.listing.loops.keys()
