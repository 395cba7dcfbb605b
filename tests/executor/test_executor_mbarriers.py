# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""mbarriers: what they cannot count, and how they must not be used."""

import numpy as np
import pytest
from bulk_sources import cuda
from executor_harness import caught, run_cuda

from gpuprof.executor import FaultKind

MISALIGNED = 'asm volatile("mbarrier.init.b64 [%0], 1;" ::"l"((char *)&b + 4));'
MISUSED = {
    "arrive(&b);": "where none was initialised",
    "init(&b, 0);": "count 0",
    MISALIGNED: "not a multiple of 8",
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


@pytest.mark.parametrize(
    ("body", "faulty"),
    [
        ("init(&b, 1);", "init(&b, 0);"),
        ("init(&b, 1048575);", "init(&b, 1048576);"),
        ("init(&b, 9); arrive_sink(&b, 1);", "init(&b, 9); arrive_sink(&b, 0);"),
        ("init(&b, 1048575); arrive_sink(&b, 1048575);", "init(&b, 1048575); arrive_sink(&b, 1048576);"),
        ("init(&b, 1); expect(&b, 0);", "init(&b, 1); expect(&b, -1);"),
        ("init(&b, 1); expect(&b, 1048575);", "init(&b, 1); expect(&b, 1048576);"),
    ],
)
def test_counts_of_an_mbarrier_have_20_bits(body, faulty):
    source = cuda("""extern "C" __global__ void k(int *out) {
    __shared__ u64 b;
    if (threadIdx.x == 3) { BODY }
    out[0] = 1;
}""")
    (out,), _ = run_cuda(source.replace("BODY", body), np.zeros(1, np.int32))
    assert out.array().tolist() == [1]
    fault = caught(source.replace("BODY", faulty), np.zeros(1, np.int32))
    assert (fault.kind, fault.thread) == (FaultKind.MBARRIER, (3, 0, 0))
    assert "which is not between" in fault.detail


#: 64 arrivals, and whether each one's wait would succeed behind them.
ARRIVALS = """extern "C" __global__ void k(int *over) {
    __shared__ u64 b;
    if (threadIdx.x == 0)
        init(&b, EXPECTED);
    __syncthreads();
    u64 state = 0;
    ARRIVE
    __syncthreads();
    unsigned done;
    asm volatile("{.reg .pred p;\\nmbarrier.test_wait.shared::cta.b64 p, [%1], %2;\\nselp.u32 %0, 1, 0, p;}"
                 : "=r"(done) : "r"(at(&b)), "l"(state) : "memory");
    over[threadIdx.x] = done;
}"""
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
