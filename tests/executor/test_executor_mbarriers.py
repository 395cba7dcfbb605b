# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Barriers that threads meet at: mbarriers, those of some warps, and those of a warp's lanes."""

from pathlib import Path

import numpy as np
import pytest
from bulk_sources import cuda
from cuda_sources import either, kernel_table
from executor_harness import KERNELS_BY_HAND, caught, line_of, run_cuda

from gpuprof.executor import FaultKind, KernelFault

MISALIGNED = 'asm volatile("mbarrier.init.b64 [%0], 1;" ::"l"((char *)&b + 4));'
MISUSED = {
    "arrive(&b);": "where none was initialised",
    "init(&b, 0);": "count 0",
    MISALIGNED: "not a multiple of 8",
    "init(&b, 1048576);": "which is not between",
    "init(&b, 9); arrive_sink(&b, 0);": "which is not between",
    "init(&b, 1048575); arrive_sink(&b, 1048576);": "which is not between",
    "init(&b, 1); expect(&b, -1);": "which is not between",
    "init(&b, 1); expect(&b, 1 << 20);": "1,048,576",
    "init(&b, 1); expect(&b, 16); arrive(&b);": "more often",
    "init(&b, 2); arrive(&b); wait(&b, 0);": "1 of 2 arrivals are missing",
    "init(&b, 1); expect(&b, 48); wait(&b, 0);": "48 announced bytes",
}


@pytest.mark.parametrize("body", MISUSED)
def test_misused_mbarriers(body):
    source = cuda(f"""extern "C" __global__ void k(int *out) {{
    __shared__ u64 b, other;
    if (threadIdx.x == 0)
        init(&other, 1);
    if (threadIdx.x == 37) {{
        {body}
    }}
    out[0] = 1;
}}""")
    fault = caught(source, np.zeros(1, np.int32), block=(64, 1, 1), grid=(3, 1, 1))
    assert fault.kind is (FaultKind.MISALIGNED if body is MISALIGNED else FaultKind.MBARRIER)
    assert MISUSED[body] in fault.detail
    assert fault.thread == (37, 0, 0)


ARRIVALS = KERNELS_BY_HAND["64 arrivals"].text
TOGETHER = "state = arrive(&b);"
ONE_BY_ONE = "for (int t = 0; t < 64; ++t) { if (threadIdx.x == t) state = arrive(&b); __syncthreads(); }"
WARP_BY_WARP = (
    "if (threadIdx.x < 32) state = arrive(&b); __syncthreads(); if (threadIdx.x >= 32) state = arrive(&b);"
)


@pytest.mark.parametrize(
    ("arrive", "expected", "over"),
    [
        (TOGETHER, 64, "1" * 64),
        (TOGETHER, 65, "0" * 64),
        (TOGETHER, 63, None),
        (TOGETHER, 40, None),
        (TOGETHER, 20, None),
        (ONE_BY_ONE, 63, "1" * 63 + "0"),
        (ONE_BY_ONE, 40, "1" * 40 + "0" * 24),
        (ONE_BY_ONE, 31, "0" * 31 + "1" * 31 + "00"),
        (ONE_BY_ONE, 20, "1" * 20 + "0" * 20 + "1" * 20 + "0" * 4),
        (WARP_BY_WARP, 64, "1" * 64),
        (WARP_BY_WARP, 33, None),
        (WARP_BY_WARP, 31, None),
    ],
)
def test_arrivals_beyond_a_phase_as_an_h200_takes_them(arrive, expected, over):
    source = cuda(ARRIVALS.replace("EXPECTED", str(expected)).replace("ARRIVE", arrive))
    if over is None:
        fault = caught(source, np.zeros(64, np.int32), block=(64, 1, 1))
        assert "with its warp, more often than the phase still expects" in fault.detail
        assert fault.kind is FaultKind.MBARRIER
    else:
        (out,), _ = run_cuda(source, np.zeros(64, np.int32), block=(64, 1, 1))
        assert "".join(map(str, out.array())) == over


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


ALL = "0xffffffff"


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
