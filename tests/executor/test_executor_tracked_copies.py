# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""mbarriers that follow `cp.async`, that threads drop out of, and that tell what is pending."""

import numpy as np
import pytest
from executor_harness import caught, run_cuda

from gpuprof.executor import FaultKind

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
