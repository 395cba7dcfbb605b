# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Lanes of a warp that come to a warp operation from several places of the program, or not all at once."""

import numpy as np
import pytest
from executor_harness import caught, line_of, run_cuda

from gpuprof.executor import FaultKind

ALL = "0xffffffff"
#: Warp operations on `v`, as asm whose result is `d`; `{m}` is the member mask.
OPERATIONS = {
    "ballot": "{{ .reg .pred p; setp.gt.u32 p, %1, 40; vote.sync.ballot.b32 %0, p, {m}; }}",
    "all": "{{ .reg .pred p; setp.lt.u32 p, %1, 90; vote.sync.all.pred p, p, {m}; selp.u32 %0, 7, 3, p; }}",
    "any": "{{ .reg .pred p; setp.gt.u32 p, %1, 92; vote.sync.any.pred p, p, {m}; selp.u32 %0, 7, 3, p; }}",
    "uni": "{{ .reg .pred p; setp.gt.u32 p, %1, 0; vote.sync.uni.pred p, p, {m}; selp.u32 %0, 7, 3, p; }}",
    "idx": "{{ .reg .b32 l; and.b32 l, %1, 31; shfl.sync.idx.b32 %0, %1, l, 31, {m}; }}",
    "up": "shfl.sync.up.b32 %0, %1, 3, 0, {m};",
    "bfly": "shfl.sync.bfly.b32 %0, %1, 5, 31, {m};",
    "add": "redux.sync.add.u32 %0, %1, {m};",
    "min": "redux.sync.min.s32 %0, %1, {m};",
    "match": "{{ .reg .b32 h; shr.u32 h, %1, 4; match.any.sync.b32 %0, h, {m}; }}",
    "match all": "{{ .reg .pred q; .reg .b32 z; mov.u32 z, 5; match.all.sync.b32 %0|q, z, {m};"
    " @q add.u32 %0, %0, 1; }}",
    "elect": "{{ .reg .pred q; elect.sync %0|q, {m}; @q add.u32 %0, %0, 100; }}",
}


def results(body: str, **keywords) -> list[int]:
    """Run 64 threads; `use(v)` is the operation."""
    source = f'extern "C" __global__ void k(unsigned *out, int n) {{\nconst int t = threadIdx.x;\n{body}\n}}'
    (out,), _ = run_cuda(source, np.zeros(64, np.uint32), scalars=(32,), block=(64, 1, 1), **keywords)
    return out.array().tolist()


def asm(text: str, mask: str = "-1") -> str:
    return f'asm volatile("{text.format(m="%2")}" : "=r"(d) : "r"(v), "r"({mask}) : "memory");'


@pytest.mark.parametrize("follow", [False, True])
@pytest.mark.parametrize("name", OPERATIONS)
def test_lanes_of_three_branches_exchange_as_if_they_were_together(name, follow):
    use = asm(OPERATIONS[name])
    start = "unsigned v = 3 * t % 96 + 1, d = 9;"
    apart = f"""{start}
    switch (t % 3) {{
    case 0: {use} out[t] = d; break;
    case 1: if (n > 3) {{ {use} out[t] = d; }} break;
    default: v = 3 * t % 96 + n - 31; {use} out[t] = d;
    }}"""
    assert results(apart, follow_undefined=follow) == results(f"{start} {use} out[t] = d;")


def test_lanes_at_a_join_go_on_to_the_operation_that_the_others_wait_at():
    """Half of a warp votes within the branch, the other half behind it: with one mask, in one vote."""
    found = results("""unsigned d = 0, late = 0;
    if (t % 2)
        asm volatile("{ .reg .pred p; setp.gt.u32 p, %1, 20; vote.sync.ballot.b32 %0, p, -1; }"
                     : "=r"(d) : "r"(t));
    if (t % 2 == 0)
        asm volatile("{ .reg .pred p; setp.gt.u32 p, %1, 30; vote.sync.ballot.b32 %0, p, -1; }"
                     : "=r"(late) : "r"(t));
    out[t] = d + late;""")
    first = sum(1 << t for t in range(32) if t > (20 if t % 2 else 30))
    assert found == [first] * 32 + [0xFFFFFFFF] * 32


def test_registers_within_a_basic_block_survive_others_that_run_it_meanwhile():
    """Lanes come to one vote through one block, at different times, with values made in that very block."""
    found = results("""unsigned d = 0;
    for (int i = 0; i < 2; ++i)
        if (t % 2 == i)
            asm volatile("{ .reg .b32 x; .reg .pred p; mul.lo.u32 x, %1, 7; rem.u32 x, x, 5;"
                         "setp.eq.u32 p, x, 0; vote.sync.ballot.b32 %0, p, -1; add.u32 %0, %0, x; }"
                         : "=r"(d) : "r"(t));
    out[t] = d;""")
    votes = [sum(1 << (t % 32) for t in range(32 * w, 32 * w + 32) if 7 * t % 5 == 0) for w in (0, 1)]
    assert found == [(votes[t // 32] + 7 * t % 5) % 2**32 for t in range(64)]


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


def test_lanes_that_meet_go_on_as_one():
    """Behind the meeting the warp is whole again: one request stores what all lanes have."""
    source = """extern "C" __global__ void k(unsigned *out) {
    unsigned d = 0;
    const int t = threadIdx.x;
    if (t % 2)
        asm volatile("redux.sync.add.u32 %0, %1, -1;" : "=r"(d) : "r"(t));
    else
        asm volatile("redux.sync.add.u32 %0, %1, -1;" : "=r"(d) : "r"(2 * t));
    out[t] = d;
}"""
    _, result = run_cuda(source, np.zeros(64, np.uint32), block=(64, 1, 1))
    assert result.counters["global_store_requests"] == 2
