# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Clusters: their blocks, distributed shared memory, and words by which their threads signal."""

import numpy as np
import pytest
from bulk_sources import clustered
from executor_harness import KERNELS_BY_HAND, caught, cuda_program, line_of, run_cuda

from gpuprof.executor import (
    FaultKind,
    GlobalMemory,
    Sample,
    choose_blocks,
    launch,
)
from gpuprof.executor.sampling import Stratum

RNG = np.random.default_rng(12)


def whole_numbers(*shape: int) -> np.ndarray:
    """Return floats whose sums and products are exact."""
    return RNG.integers(-8, 9, shape).astype(np.float32)


REDUCTION = KERNELS_BY_HAND["a sum of clusters"].text


FLAGS = KERNELS_BY_HAND["flags from block to block"].text


def test_whole_clusters_are_sampled():
    source = clustered(REDUCTION.replace("SIZE", "4"))
    program = cuda_program(source)
    values = whole_numbers(64 * 400)
    memory = GlobalMemory()
    arrays = [memory.allocate(values, "in"), memory.allocate(np.zeros(100, np.float32), "out")]
    shape = (400, 1, 1), (64, 1, 1), [*arrays, values.size], memory
    sampled = launch(program, *shape, blocks=choose_blocks((400, 1, 1), 24))
    whole = launch(program, *shape)
    assert (sampled.sampled_blocks, sampled.total_blocks, sampled.exact_sample) == (24, 400, True)
    assert sampled.counters == whole.counters
    # The blocks of a cluster run on several multiprocessors, and share its work in a way that nobody knows.
    assert whole.busiest["l1_passes"] == pytest.approx(whole.counters["l1_passes"] / 132)
    np.testing.assert_array_equal(arrays[1].array(), values.reshape(100, -1).sum(axis=1))


def test_named_blocks_bring_their_clusters():
    one = choose_blocks((400, 1, 1), 400)
    assert one.in_clusters((400, 1, 1), (4, 1, 1)).count == 100
    named = Sample(tuple(Stratum((range(x, x + 1), range(1), range(1)), 1) for x in (5, 6, 399)))
    clusters = named.in_clusters((400, 1, 1), (4, 1, 1))
    assert clusters.blocks(0, clusters.count).indices[:, 0].tolist() == [4, 396]


def test_counts_through_other_blocks_memory_are_marked():
    _, result = run_cuda(clustered(FLAGS), np.zeros(4, np.int32), grid=(4, 1, 1))
    assert {"shared_store_requests", "shared_atomic_requests"} <= result.hidden.keys()
    assert "shared_load_requests" not in result.hidden


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
WITHIN = KERNELS_BY_HAND["a signal within a block"].text
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
