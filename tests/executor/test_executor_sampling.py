# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Samples stand for their grid, and say when they do not; and what the busiest multiprocessor does."""

import tracemalloc
from itertools import product

import numpy as np
import pytest
from each import each
from executor_harness import cuda_program, run_cuda
from hypothesis import given
from hypothesis import strategies as st

from gpuprof.executor import GlobalMemory, Observer, choose_blocks, launch
from gpuprof.executor.memory.shared_memory import SharedBlocks
from gpuprof.executor.sampling import every_block
from gpuprof.executor.totals import Busiest

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


def test_blocks_that_repeat_along_a_row_are_not_all_met_at_one_place():
    for period in (3, 8, 32, 65, 128):
        for rows in (64, 127, 128, 1000):
            row = choose_blocks((period * rows, 1, 1), 8)
            assert len(set(row.blocks(1, row.count - 1).indices[:, 0] % period)) > 1, (period, rows)


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


def least(work, multiprocessors, weights=None):
    found = Busiest()
    blocks = np.array(work, dtype=np.int64)
    found.add("w", blocks, np.ones(len(work)) if weights is None else np.array(weights))
    return found.least("w", multiprocessors)


def best_placement(work, multiprocessors):
    """The smallest load of the busiest one over all placements."""
    return min(
        max(sum(w for w, at in zip(work, places, strict=True) if at == sm) for sm in range(multiprocessors))
        for places in product(range(multiprocessors), repeat=len(work))
    )


@pytest.mark.parametrize(("trips", "part"), [(4000, 1), (5, 1 / 2)])
def test_what_the_warp_does_that_does_most(trips, part):
    source = """extern "C" __global__ void k(float *y, int first) {
        float sum = 0;
        for (int j = 0; j < (threadIdx.x < 32 ? first : 5); ++j) sum = sum * 1.5f + y[j];
        y[4000 + threadIdx.x] = sum;
    }"""
    _, result = run_cuda(source, np.zeros(4096, np.float32), scalars=(np.int32(trips),), block=(64, 1, 1))
    assert result.longest == pytest.approx(part * result.block_warps.sum(), rel=0.1)


@each(seed=range(40))
def test_it_is_never_above_the_best_placement(seed):
    random = np.random.default_rng(seed)
    work = random.integers(0, 9, size=random.integers(1, 7)).tolist()
    for multiprocessors in (1, 2, 3):
        assert least(work, multiprocessors) <= best_placement(work, multiprocessors) + 1e-9


def test_a_row_of_blocks_is_divided_where_their_work_changes():
    # 28 blocks of two tiles, 104 of one; the first, four in between and the last run.
    sample = choose_blocks((1, 132, 1), 6)
    assert sample.of_first_kind([2, 1, 1, 1, 1, 1], 160) == 28
    divided = sample.divided(28)
    blocks = divided.blocks(0, divided.count)
    assert blocks.weights @ np.where(blocks.indices[:, 1] < 28, 2, 1) == 160
    assert {27, 28} <= {*blocks.indices[:, 1].tolist()}
    assert divided.total == 132
    # Who does something else, all the same, or a share of it, and a grid that is no row.
    assert sample.of_first_kind([2, 1, 3, 1, 1, 1], 160) is None
    assert sample.of_first_kind([1, 1, 1, 1, 1, 1], 160) is None
    assert sample.of_first_kind([3, 1, 1, 1, 1, 1], 159) is None
    assert choose_blocks((2, 66, 1), 6).of_first_kind([2, 1, 1, 1, 1, 1], 160) is None


@pytest.mark.parametrize(
    ("trips", "exact"), [([3] * 17 + [2] * 47, True), ([3, 2] * 8 + [2] * 47 + [1], False)]
)
def test_blocks_of_two_kinds_are_counted_by_how_many_there_are_of_each(trips, exact):
    program, shape = cuda_program(SOURCE), ((64, 1, 1), (32, 1, 1))

    def run(blocks):
        memory = GlobalMemory()
        arrays = memory.allocate(np.array(trips, np.int32), "in"), memory.allocate(np.zeros(2048), "out")
        return launch(program, *shape, [*arrays], memory, blocks=blocks)

    whole, sampled = run("all"), run(choose_blocks((64, 1, 1), 6))
    assert sampled.counters != whole.counters
    kinds = (sampled.sample.blocks(0, 6).indices[:, 0] >= 17).astype(int)
    found = sampled.of_kinds(kinds, np.array([17.0, 47.0]))
    assert found.exact_sample is exact
    assert found.stored["out"].by_grid == 2048 * 4
    if exact:
        for part in ("counters", "lines", "busiest", "loop_iterations"):
            assert getattr(found, part) == getattr(whole, part)
        np.testing.assert_array_equal(found.block_threads, whole.block_threads)
