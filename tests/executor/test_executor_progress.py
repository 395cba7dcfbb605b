# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Every lane goes on, whoever else waits in a loop: locks, flags, barriers of a grid; and what never ends."""

import numpy as np
import pytest
from executor_harness import caught, cuda_program, line_of, run_cuda

from gpuprof.executor import FaultKind

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


def test_lanes_that_took_a_lock_in_turn_meet_at_the_next_barrier():
    source = """extern "C" __global__ void k(int *out) {
    __shared__ int lock, sum, tile[64];
    const int t = threadIdx.x;
    if (t == 0)
        lock = sum = 0;
    __syncthreads();
    while (atomicCAS(&lock, 0, 1) != 0)
        ;
    __threadfence_block();
    sum += t;
    __threadfence_block();
    atomicExch(&lock, 0);
    __syncthreads();
    tile[t] = sum;
    __syncwarp();
    out[t] = tile[t ^ 1]; // together
}"""
    (out,), result = run_cuda(source, np.zeros(64, np.int32), block=(64, 1, 1))
    assert out.array().tolist() == [sum(range(64))] * 64
    assert result.lines[line_of(source, "together")]["global_store_requests"] == 2


def test_lanes_that_come_to_different_barriers_are_told():
    source = """extern "C" __global__ void k(int *lock, int *out) {
    while (atomicCAS(lock, 0, 1) != 0)
        ;
    atomicExch(lock, 0);
    if (threadIdx.x % 2) {
        out[threadIdx.x] = 1;
        asm volatile("bar.sync 0;" ::: "memory");
    } else {
        out[threadIdx.x] = 2;
        asm volatile("bar.sync 0;" ::: "memory");
    }
}"""
    fault = caught(source, np.zeros(1, np.int32), np.zeros(32, np.int32))
    assert fault.kind is FaultKind.BARRIER
    assert "divergent code" in fault.detail


GRID = """__device__ unsigned arrived;
static __device__ void grid_barrier(unsigned round) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(&arrived, 1);
        while (*(volatile unsigned *)&arrived < gridDim.x * round)
            ;
        __threadfence();
    }
    __syncthreads();
}
extern "C" __global__ void k(int *a, int *b, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    a[i] = i;
    grid_barrier(1);
    b[i] = a[(i + 1025) % n];
    grid_barrier(2);
    a[i] = b[(i + 4000) % n];
}"""


@pytest.mark.parametrize(("blocks", "threads"), [(5, 64), (70, 1024), (128, 1024)])
def test_a_grid_barrier_of_more_blocks_than_run_together(blocks, threads):
    n = blocks * threads
    none = np.zeros(n, np.int32)
    (a, b), result = run_cuda(GRID, none, none, scalars=(n,), grid=(blocks, 1, 1), block=(threads, 1, 1))
    assert (b.array() == (np.arange(n) + 1025) % n).all()
    assert (a.array() == (np.arange(n) + 5025) % n).all()
    assert result.counters["barriers"] == 4 * n // 32
    assert result.sampled_blocks == blocks


def test_blocks_of_different_batches_contend_for_a_lock():
    source = """extern "C" __global__ void k(int *lock, int *sum) {
    if (threadIdx.x == 1000) {
        while (atomicCAS(lock, 0, 1) != 0)
            ;
        __threadfence();
        *sum += blockIdx.x;
        __threadfence();
        atomicExch(lock, 0);
    }
}"""
    one = np.zeros(1, np.int32)
    (_, total), _ = run_cuda(source, one, one, grid=(70, 1, 1), block=(1024, 1, 1))
    assert total.array()[0] == sum(range(70))


def test_blocks_that_wait_for_more_than_can_ever_come_are_told():
    source = GRID.replace("gridDim.x * round", "(gridDim.x + 1) * round")
    none = np.zeros(70 * 1024, np.int32)
    fault = caught(source, none, none, scalars=(len(none),), grid=(70, 1, 1), block=(1024, 1, 1))
    assert fault.kind is FaultKind.ENDLESS


def test_a_loop_that_gives_up_by_itself_ends():
    source = """extern "C" __global__ void k(volatile int *flag, int *out) {
    int tries = 0;
    while (flag[0] == 0 && tries < 500)
        ++tries;
    out[threadIdx.x] = tries;
}"""
    (_, out), _ = run_cuda(source, np.zeros(1, np.int32), np.zeros(32, np.int32))
    assert out.array().tolist() == [500] * 32


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


def test_loops_that_no_other_thread_ends_keep_their_warps_together():
    source = """extern "C" __global__ void k(int *flag, int *out, int n) {
    for (int i = 0; i < n * (threadIdx.x % 32); ++i)
        atomicOr(flag, 1);
    out[threadIdx.x] = 1; // together
}"""
    _, result = run_cuda(
        source, np.zeros(1, np.int32), np.zeros(64, np.int32), scalars=(40,), block=(64, 1, 1)
    )
    assert result.lines[line_of(source, "together")]["global_store_requests"] == 2
