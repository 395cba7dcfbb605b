# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Samples stand for their grid, and say when they do not."""

import tracemalloc

import numpy as np
import pytest
from executor_harness import cuda_program
from hypothesis import given
from hypothesis import strategies as st

from gpuprof.executor import GlobalMemory, Observer, choose_blocks, launch
from gpuprof.executor.memory.shared_memory import SharedBlocks
from gpuprof.executor.sampling import every_block

EXTENT = st.integers(1, 40)
FEW = st.integers(1, 6)


@given(st.tuples(EXTENT, EXTENT, st.integers(1, 4)), st.integers(1, 60))
def test_a_sample_stands_for_every_block_once(grid, limit):
    sample = choose_blocks(grid, limit)
    total = grid[0] * grid[1] * grid[2]
    assert (sample.count, sample.total) == (min(limit, total), total)
    blocks = sample.blocks(0, sample.count)
    assert len(blocks.indices) == len({tuple(index) for index in blocks.indices}) == sample.count
    assert (blocks.indices >= 0).all()
    assert (blocks.indices < grid).all()
    assert blocks.weights.sum() == pytest.approx(total)


@given(st.tuples(FEW, FEW, FEW), st.integers(1, 60), FEW)
def test_batches_list_each_block_once_and_in_order(grid, limit, batch):
    for sample in (choose_blocks(grid, limit), every_block(grid)):
        whole = sample.blocks(0, sample.count)
        parts = [
            sample.blocks(first, min(first + batch, sample.count)) for first in range(0, sample.count, batch)
        ]
        for name in ("indices", "strata", "weights"):
            listed = np.concatenate([getattr(part, name) for part in parts])
            np.testing.assert_array_equal(listed, getattr(whole, name))
    z, y, x = np.indices(grid[::-1]).reshape(3, -1)
    np.testing.assert_array_equal(whole.indices, np.stack([x, y, z], axis=1))


def test_a_sample_has_corners_edges_and_interior():
    sample = choose_blocks((10, 10, 1), 9)
    corners = {(0, 0, 0), (9, 0, 0), (0, 9, 0), (9, 9, 0)}
    assert {tuple(i) for i in sample.blocks(0, 9).indices.tolist()} >= corners
    assert sorted(stratum.size for stratum in sample.strata) == [1, 1, 1, 1, 8, 8, 8, 8, 64]


def test_an_empty_sample_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        choose_blocks((2, 2, 1), 0)


SOURCE = """extern "C" __global__ void k(const int *in, int *out) {
    int i = blockIdx.x * 32 + threadIdx.x;
    int trips = in[blockIdx.x], total = 0;
    for (int j = 0; j < trips; ++j)
        total += in[j];
    out[i] = total;
}"""


@pytest.mark.parametrize(("trips", "exact"), [([4] * 64, True), ([*range(64)], False)])
def test_blocks_that_disagree_make_the_counts_estimates(trips, exact):
    memory = GlobalMemory()
    source, target = (
        memory.allocate(np.array(trips, np.int32), "in"),
        memory.allocate(np.zeros(2048, np.int32), "out"),
    )
    program = cuda_program(SOURCE)
    result = launch(
        program, (64, 1, 1), (32, 1, 1), [source, target], memory, blocks=choose_blocks((64, 1, 1), 6)
    )
    assert result.exact_sample is exact
    assert result.counters["global_store_requests"] == 64


class Stopped(Exception):
    """Ends a launch that would take hours."""


def test_a_launch_over_the_largest_grid_holds_no_more_than_a_batch():
    """2^31-1 blocks are legal, and their indices alone would fill 48 GiB."""
    memory = GlobalMemory()
    target = memory.allocate(np.zeros(1, np.int32), "out")
    source = """extern "C" __global__ void k(int *out) {
    if (blockIdx.x == 0) out[0] = gridDim.x;
}"""
    batches = []

    class Third(Observer):
        def wants(self, buffer):
            batches.append(isinstance(buffer, SharedBlocks))
            if sum(batches) == 3:
                raise Stopped
            return False

    program = cuda_program(source)
    tracemalloc.start()
    try:
        with pytest.raises(Stopped):
            launch(program, (2**31 - 1, 1, 1), (32, 1, 1), [target], memory, observers=[Third()])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert target.array()[0] == 2**31 - 1
    assert peak < 32 << 20
