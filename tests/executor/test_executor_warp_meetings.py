# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Lanes that come to a warp operation, or to what they poll for, from several places or at other times."""

import numpy as np
import pytest
from executor_harness import caught, line_of, run_cuda

from gpuprof.executor import FaultKind

ALL = "0xffffffff"


def results(body: str, **keywords) -> list[int]:
    """Run 64 threads; `use(v)` is the operation."""
    source = f'extern "C" __global__ void k(unsigned *out, int n) {{\nconst int t = threadIdx.x;\n{body}\n}}'
    (out,), _ = run_cuda(source, np.zeros(64, np.uint32), scalars=(32,), block=(64, 1, 1), **keywords)
    return out.array().tolist()


def test_lanes_that_a_guard_keeps_away_go_on_while_the_others_wait():
    """Odd lanes vote with lane 0, which their guard leaves out and which comes to a vote of its own later."""
    found = results("""unsigned d = 5;
    asm volatile("{ .reg .pred p, q; and.b32 %0, %1, 1; setp.ne.u32 p, %0, 0; setp.gt.u32 q, %1, 8;"
                 "mov.u32 %0, 7; @p vote.sync.ballot.b32 %0, q, 0xaaaaaaab; add.u32 %0, %0, 1; }"
                 : "=&r"(d) : "r"(t % 32));
    if (t % 32 == 0)
        asm volatile("{ .reg .pred q; setp.eq.u32 q, %1, 0; vote.sync.ballot.b32 %0, q, 0xaaaaaaab; }"
                     : "=r"(d) : "r"(t % 32));
    out[t] = d;""")
    vote = 0xAAAAAAAA & ~0x1FF | 1
    assert found == [vote, *([vote + 1, 8] * 16)[:31]] * 2


def test_operations_of_different_kinds_never_meet():
    source = f"""extern "C" __global__ void k(unsigned *out) {{
    unsigned d = 0;
    if (threadIdx.x % 2)
        d = __reduce_add_sync({ALL}, 1u); // planted
    else
        d = __ballot_sync({ALL}, 1); // other
    out[threadIdx.x] = d;
    __syncwarp();
    out[threadIdx.x] += 1;
}}"""
    fault = caught(source, np.zeros(32, np.uint32))
    assert fault.kind is FaultKind.BARRIER
    lines = [line_of(source, "planted"), line_of(source, "other")]
    assert fault.source_line in lines
    other = lines[1 - lines.index(fault.source_line)]
    assert "with member mask 0xffffffff for lanes " in fault.detail
    assert fault.detail.endswith(f" in line {other}")


def test_masks_that_disagree_are_a_deadlock_and_say_who_waits_for_whom():
    source = """extern "C" __global__ void k(unsigned *out) {
    out[threadIdx.x] = __ballot_sync(threadIdx.x == 4 ? 0x30u : 0xffffffffu, 1);
}"""
    fault = caught(source, np.zeros(32, np.uint32))
    assert (fault.kind, fault.thread, fault.source_line) == (FaultKind.BARRIER, (0, 0, 0), 2)
    assert fault.detail == (
        "waits at `vote.sync.ballot.b32` with member mask 0xffffffff for lane 4 of its warp, which waits at"
        " `vote.sync.ballot.b32` in line 2"
    )


def test_a_lane_must_name_itself():
    source = """extern "C" __global__ void k(unsigned *out) {
    out[threadIdx.x] = __ballot_sync(threadIdx.x == 3 ? 0xf0u : 0xffffffffu, 1);
}"""
    fault = caught(source, np.zeros(32, np.uint32))
    assert (fault.kind, fault.thread) == (FaultKind.BARRIER, (3, 0, 0))
    assert "the member mask 0x000000f0, which does not name itself" in fault.detail


def test_a_shuffle_reads_nobody_outside_its_mask():
    source = """extern "C" __global__ void k(int *out) {
    const unsigned mine = threadIdx.x < 16 ? 0xffffu : 0xffff0000u;
    out[threadIdx.x] = __shfl_xor_sync(mine, out[threadIdx.x], SOURCE);
}"""
    run_cuda(source.replace("SOURCE", "15"), np.zeros(32, np.int32))
    fault = caught(source.replace("SOURCE", "16"), np.zeros(32, np.int32))
    assert (fault.kind, fault.thread) == (FaultKind.ABSENT_LANE, (0, 0, 0))


@pytest.mark.parametrize("polling", [0, 1])
def test_lanes_of_a_warp_find_what_they_poll_for_at_different_times(polling):
    source = """extern "C" __global__ void k(volatile int *flag, int *out, int polling) {
    const int t = threadIdx.x;
    if (blockIdx.x == polling) {
        while (flag[t] == 0)
            ;
        out[t] = 2 * flag[t];
    } else if (t % 3)
        flag[t] = t + 100;
}"""
    flags = np.where(np.arange(32) % 3, 0, 7).astype(np.int32)
    (_, out), _ = run_cuda(source, flags, np.zeros(32, np.int32), scalars=(polling,), grid=(2, 1, 1))
    assert out.array().tolist() == [2 * (t + 100) if t % 3 else 14 for t in range(32)]


@pytest.mark.parametrize("width", [2, 4])
def test_vector_red_adds_to_each_element(width):
    names = ", ".join(f"%{i + 1}" for i in range(width))
    values = ", ".join(f'"f"(in[{width} * t + {i}])' for i in range(width))
    source = f"""extern "C" __global__ void k(float *out, const float *in) {{
    const int t = threadIdx.x;
    asm volatile("red.global.add.v{width}.f32 [%0], {{{names}}};" ::"l"(out + {width} * (t % 8)), {values});
}}"""
    given = np.arange(32 * width, dtype=np.float32)
    buffers, result = run_cuda(source, np.full(8 * width, 0.5, dtype=np.float32), given)
    np.testing.assert_array_equal(buffers[0].array(), 0.5 + given.reshape(4, -1).sum(axis=0))
    assert result.counters["global_atomic_requests"] == 1
    assert result.counters["global_atomic_sectors"] == 4 * width  # four lanes at each address
