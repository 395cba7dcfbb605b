# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Samples stand for their grid, and say when they do not."""

import subprocess
import sys

import numpy as np
import pytest
from executor_harness import cuda_program
from hypothesis import given
from hypothesis import strategies as st

from gpuprof.executor import GlobalMemory, choose_blocks, launch

EXTENT = st.integers(1, 40)


@given(st.tuples(EXTENT, EXTENT, st.integers(1, 4)), st.integers(1, 60))
def test_a_sample_stands_for_every_block_once(grid, limit):
    sample = choose_blocks(grid, limit)
    total = grid[0] * grid[1] * grid[2]
    assert 1 <= len(sample.indices) <= max(limit, 1)
    assert len(sample.indices) == min(limit, total)
    assert len({tuple(index) for index in sample.indices}) == len(sample.indices)
    assert (sample.indices >= 0).all()
    assert (sample.indices < grid).all()
    assert sample.weights.sum() == pytest.approx(total)


def test_a_sample_has_corners_edges_and_interior():
    sample = choose_blocks((10, 10, 1), 9)
    assert {tuple(i) for i in sample.indices.tolist()} >= {(0, 0, 0), (9, 0, 0), (0, 9, 0), (9, 9, 0)}
    assert sorted(sample.class_sizes.values()) == [1, 1, 1, 1, 8, 8, 8, 8, 64]


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


def test_batches_report_progress_and_agree_with_one_another():
    memory = GlobalMemory()
    source, target = (
        memory.allocate(np.array([3] * 5000, np.int32), "in"),
        memory.allocate(np.zeros(160000, np.int32), "out"),
    )
    seen = []
    result = launch(
        cuda_program(SOURCE),
        (5000, 1, 1),
        (32, 1, 1),
        [source, target],
        memory,
        progress=lambda *a: seen.append(a),
    )
    assert seen[-1] == (5000, 5000)
    assert len(seen) > 1
    assert (target.array() == 9).all()
    assert result.counters["global_load_requests"] == 5000 * 4
    assert result.lines[6].global_store_requests == 5000
    bare = launch(cuda_program(SOURCE), (1, 1, 1), (32, 1, 1), [source, target], memory, per_line=False)
    assert bare.lines == {}


def test_importing_the_executor_loads_no_cuda():
    code = "import sys, gpuprof.executor; print([m for m in ('cuda', 'llvmlite') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
