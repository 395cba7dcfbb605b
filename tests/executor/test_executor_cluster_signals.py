# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Words in shared memory by which threads signal: whom a release and an acquire reach, by their scopes."""

import numpy as np
import pytest
from executor_harness import caught, line_of, run_cuda

from gpuprof.executor import FaultKind

_HEAD = """
__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void meet()
{
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}
"""
#: The first block of a cluster of two tells the second one of an element, by a word in its own shared memory.
ACROSS = (
    _HEAD
    + """extern "C" __global__ void __cluster_dims__(2, 1, 1) k(const int *a, int *b, int *c) {
    __shared__ unsigned flag;
    const int w = blockIdx.x, t = threadIdx.x;
    if (t == 0)
        flag = 0;
    meet();
    if (t == 0 && w % 2 == 0) {
        b[w] = a[w]; // writes
        asm volatile("STORE.shared::cta.u32 [%0], 1;" ::"r"(at(&flag)) : "memory"); // signals
    }
    if (t == 0 && w % 2 == 1) {
        unsigned place, found;
        asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(place) : "r"(at(&flag)));
        do
            asm volatile("LOAD.shared::cluster.u32 %0, [%1];" : "=r"(found) : "r"(place) : "memory"); // waits
        while (found == 0);
        c[w] = b[w - 1]; // reads
    }
    meet();
}"""
)
#: The first warp of a block tells the second one.
WITHIN = """extern "C" __global__ void k(const int *a, int *b, int *c) {
    __shared__ unsigned flag;
    const int w = blockIdx.x, t = threadIdx.x;
    if (t == 0)
        flag = 0;
    __syncthreads();
    const unsigned place = (unsigned)__cvta_generic_to_shared(&flag);
    if (t == 0) {
        b[w] = a[w]; // writes
        asm volatile("STORE.shared::cta.u32 [%0], 1;" ::"r"(place) : "memory"); // signals
    }
    if (t == 32) {
        unsigned found;
        do
            asm volatile("LOAD.shared::cta.u32 %0, [%1];" : "=r"(found) : "r"(place) : "memory"); // waits
        while (found == 0);
        c[w] = b[w]; // reads
    }
}"""
#: What races, if anything does: the data that the signal is about, or the signal itself.
DATA, SIGNAL = ("reads", FaultKind.GLOBAL_RACE), ("waits", FaultKind.SHARED_RACE)
ACROSS_BLOCKS = {
    ("st.release.cluster", "ld.acquire.cluster"): None,
    ("st.release.cluster", "ld.acquire.gpu"): None,
    ("st.release.gpu", "ld.acquire.cluster"): None,
    ("st.release.sys", "ld.acquire.sys"): None,
    ("st.release.cluster", "ld.relaxed.cluster"): DATA,
    ("st.relaxed.cluster", "ld.acquire.cluster"): DATA,
    ("st.volatile", "ld.acquire.cluster"): DATA,
    ("st.release.cta", "ld.acquire.cluster"): SIGNAL,
    ("st.release.cluster", "ld.acquire.cta"): SIGNAL,
    ("st.release.cta", "ld.acquire.cta"): SIGNAL,
    ("st", "ld.acquire.cluster"): SIGNAL,
}
WITHIN_A_BLOCK = {
    ("st.release.cta", "ld.acquire.cta"): None,
    ("st.release.cluster", "ld.acquire.cta"): None,
    ("st.release.cta", "ld.acquire.gpu"): None,
    ("st.release.cta", "ld.relaxed.cta"): DATA,
    ("st.relaxed.cta", "ld.acquire.cta"): DATA,
    ("st", "ld.acquire.cta"): SIGNAL,
}


def arrays():
    return np.arange(1, 5, dtype=np.int32), np.zeros(4, np.int32), np.zeros(4, np.int32)


@pytest.mark.parametrize(
    ("source", "words", "wrong"),
    [
        *((ACROSS, words, wrong) for words, wrong in ACROSS_BLOCKS.items()),
        *((WITHIN, words, wrong) for words, wrong in WITHIN_A_BLOCK.items()),
    ],
)
def test_a_signal_orders_what_its_scopes_hold(source, words, wrong):
    source = source.replace("STORE", words[0]).replace("LOAD", words[1])
    setting = {"grid": (4, 1, 1), "block": (64, 1, 1), "instruction_budget": 20_000}
    if wrong is None:
        (a, _, c), _ = run_cuda(source, *arrays(), **setting)
        told = [0, 1, 0, 3] if "cluster_dims" in source else a.array()
        assert c.array().tolist() == list(told)
        return
    place, kind = wrong
    fault = caught(source, *arrays(), **setting)
    assert (fault.kind, fault.source_line) == (kind, line_of(source, f"// {place}"))
