# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""mbarriers: what they count, that follow `cp.async`, that threads drop out of, that tell what is pending."""

import numpy as np
import pytest
from bulk_sources import cuda, numbers
from executor_harness import caught, run_cuda, tells

from gpuprof.executor import FaultKind


def test_blocks_may_be_in_different_phases():
    source = cuda("""extern "C" __global__ void k(const float4 *in, float4 *out) {
    __shared__ __align__(128) float4 tile[32];
    __shared__ u64 b;
    const int t = threadIdx.x;
    if (t == 0) { init(&b, 1); fence(); }
    __syncthreads();
    float4 sum = make_float4(0, 0, 0, 0);
    for (int i = 0; i <= (int)blockIdx.x; ++i) {
        if (t == 0) { expect(&b, 512); load(tile, in + i * 32, 512, &b); }
        wait(&b, i & 1);
        sum.x += tile[31 - t].x;
        __syncthreads();
    }
    out[blockIdx.x * 32 + t] = sum;
}""")
    data = numbers(7, 32, 4)
    (_, out), _ = run_cuda(source, data, np.zeros((7, 32, 4), np.float32), grid=(7, 1, 1))
    np.testing.assert_array_equal(out.array()[..., 0], np.cumsum(data[:, ::-1, 0], axis=0))


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


def test_an_mbarrier_must_be_initialised_before_others_use_it():
    source = cuda("""extern "C" __global__ void k(int *out) {
    __shared__ u64 b;
    if (threadIdx.x == 0) init(&b, 32);
    arrive(&b); // planted
    out[0] = 1;
}""")
    words = "uses the mbarrier at byte 0 of shared memory, which thread number 0 wrote"
    tells(source, FaultKind.SHARED_RACE, "mbarrier.arrive.shared", words, np.zeros(1, np.int32), thread=1)


def test_a_deadlock_of_two_mbarriers_is_reported():
    source = cuda("""extern "C" __global__ void k(int *out) {
    __shared__ u64 b[2];
    const int t = threadIdx.x, mine = t / 32;
    if (t == 0) { init(b, 32); init(b + 1, 32); fence(); }
    __syncthreads();
    wait(b + mine, 0); // planted
    arrive(b + 1 - mine);
    out[0] = 1;
}""")
    fault = caught(source, np.zeros(1, np.int32), block=(64, 1, 1), grid=(2, 1, 1))
    assert fault.kind is FaultKind.MBARRIER
    assert "waits for ever for the mbarrier at byte" in fault.detail
    assert "32 of 32 arrivals are missing" in fault.detail


def test_a_barrier_and_an_mbarrier_can_deadlock():
    source = cuda("""extern "C" __global__ void k(int *out) {
    __shared__ u64 b;
    const int t = threadIdx.x;
    if (t == 0) { init(&b, 32); fence(); }
    __syncthreads();
    if (t < 32) wait(&b, 0);
    __syncthreads();
    if (t >= 32) arrive(&b);
    out[0] = 1;
}""")
    fault = caught(source, np.zeros(1, np.int32), block=(64, 1, 1))
    assert (fault.kind, fault.thread) == (FaultKind.MBARRIER, (0, 0, 0))


HELPERS = """__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void wait(unsigned b, unsigned parity) {
    asm volatile("{ .reg .pred p; AGAIN%=: mbarrier.try_wait.parity.shared.b64 p, [%0], %1;"
                 "@!p bra AGAIN%=; }" ::"r"(b), "r"(parity) : "memory");
}
__device__ unsigned over(unsigned b, unsigned parity) {
    unsigned found;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(found) : "r"(b), "r"(parity) : "memory");
    return found;
}
__device__ void copy(void *to, const void *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at(to)), "l"(from) : "memory");
}
"""

#: Warp 0 copies stages for warp 1, two buffers in turn: TRACK ends a copy, WAIT waits for it.
PIPELINE = (
    HELPERS
    + """extern "C" __global__ void k(int *out, const int4 *in) {
    __shared__ int4 tiles[2][32];
    __shared__ unsigned long long full[2], empty[2];
    const int t = threadIdx.x % 32, stages = 6;
    if (threadIdx.x == 0)
        for (int i = 0; i < 2; ++i) {
            asm volatile("mbarrier.init.shared.b64 [%0], 32;" ::"r"(at(full + i)) : "memory");
            asm volatile("mbarrier.init.shared.b64 [%0], 32;" ::"r"(at(empty + i)) : "memory");
        }
    __syncthreads();
    for (int i = 0; i < stages; ++i)
        if (threadIdx.x < 32) {
            wait(at(empty + i % 2), (i / 2 + 1) % 2);
            copy(&tiles[i % 2][t], in + 32 * i + t);
            TRACK
        } else {
            WAIT
            const int4 got = tiles[i % 2][31 - t];
            out[32 * i + t] = got.x + got.y + got.z + got.w;
            asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(at(empty + i % 2)) : "memory");
        }
}"""
)
TRACK = 'asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(at(full + i % 2)) : "memory");'
ARRIVE = 'asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(at(full + i % 2)) : "memory");'
WAIT = "wait(at(full + i % 2), i / 2 % 2);"


def pipeline(track: str, wait: str) -> str:
    return PIPELINE.replace("TRACK", track).replace("WAIT", wait)


def given() -> tuple[np.ndarray, np.ndarray]:
    content = np.arange(6 * 32 * 4, dtype=np.int32).reshape(6, 32, 4)
    return content, content.sum(axis=2)[:, ::-1]


@pytest.mark.parametrize("track", [TRACK, TRACK.replace(".noinc", "") + ARRIVE])
def test_a_pipeline_whose_copies_arrive_by_themselves(track):
    content, stated = given()
    source = pipeline(track, WAIT)
    (out, _), _ = run_cuda(source, np.zeros((6, 32), np.int32), content, block=(64, 1, 1))
    assert (out.array() == stated).all()


UNTRACKED = (FaultKind.ASYNC_COPY, FaultKind.UNINITIALISED_SHARED)


@pytest.mark.parametrize(
    ("track", "wait", "kinds", "words"),
    [
        pytest.param(ARRIVE, WAIT, UNTRACKED, "", id="arriving without the copies"),
        pytest.param(TRACK, "", UNTRACKED, "", id="not waiting for them"),
        # Without .noinc an arrival stands for nobody but itself: the phase still waits for the threads.
        pytest.param(
            *(TRACK.replace(".noinc", ""), WAIT, (FaultKind.MBARRIER,), "32 of 32 arrivals are missing"),
            id="an arrival that nobody expected",
        ),
    ],
)
def test_what_a_pipeline_forgets(track, wait, kinds, words):
    fault = caught(pipeline(track, wait), np.zeros((6, 32), np.int32), given()[0], block=(64, 1, 1))
    assert fault.kind in kinds
    assert words in fault.detail
