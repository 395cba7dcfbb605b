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


def test_arrivals_beyond_a_phase_count_in_those_that_follow():
    source = cuda("""extern "C" __global__ void k(int *over) {
    __shared__ u64 b;
    if (threadIdx.x == 0)
        init(&b, EXPECTED);
    __syncthreads();
    const u64 state = arrive(&b);
    __syncthreads();
    unsigned done;
    asm volatile("{.reg .pred p;\\nmbarrier.test_wait.shared::cta.b64 p, [%1], %2;\\nselp.u32 %0, 1, 0, p;}"
                 : "=r"(done) : "r"(at(&b)), "l"(state) : "memory");
    over[threadIdx.x] = done;
}""")
    for expected, ended in ((64, 64), (63, 63), (40, 40), (20, 60), (65, 0)):
        text = source.replace("EXPECTED", str(expected))
        (over,), _ = run_cuda(text, np.zeros(64, np.int32), block=(64, 1, 1))
        assert over.array().tolist() == [1] * ended + [0] * (64 - ended), expected
