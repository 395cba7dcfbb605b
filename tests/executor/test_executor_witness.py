# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Who wrote each element last, and who read one that nobody had written."""

import numpy as np
import pytest
from executor_harness import cuda_program

from gpuprof.executor import Deed, GlobalMemory, KernelFault, Witness, choose_blocks, launch

N = 100
SOURCE = """extern "C" __global__ void one(int n, const int *x, int *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    BODY
}
"""


def witnessed(body, *, unwritten=True, item=np.int32, times=1, grid=4, blocks="all", gap=4096):
    """Run a kernel over blocks of 32 threads; line 4 is its body's first."""
    program = cuda_program(SOURCE.replace("BODY", body))
    memory = GlobalMemory(gap)
    x, y = (memory.allocate(np.arange(N, dtype=item), name) for name in "xy")
    witness = Witness([y], [y] if unwritten else [])
    sample = choose_blocks((grid, 1, 1), blocks) if blocks != "all" else "all"
    for _ in range(times):
        launch(program, (grid, 1, 1), (32, 1, 1), [N, x, y], memory, blocks=sample, observers=[witness])
    return witness, y


def test_the_writer_of_an_element_is_named():
    witness, y = witnessed("if (i < n) y[i] = x[i];")
    assert witness.writer(y, 37) == Deed(0, 4, (5, 0, 0), (1, 0, 0))
    assert witness.written(y).all()
    assert witness.unwritten_read is None


def test_of_several_stores_the_last_counts():
    witness, y = witnessed("if (i < n) y[i] = 1;\n    if (i == 37)\n        y[i] = 2;")
    assert [witness.writer(y, i).line for i in (36, 37)] == [4, 6]


def test_what_nobody_wrote_has_no_writer():
    witness, y = witnessed("if (i < n && i != 37) y[i] = x[i];")
    assert witness.writer(y, 37) is None
    assert np.flatnonzero(~witness.written(y)).tolist() == [37]


def test_wide_and_narrow_stores_belong_to_the_elements_that_they_touch():
    wide, y = witnessed("if (i < n / 4) ((int4 *)y)[i] = make_int4(0, 0, 0, 0);")
    assert [wide.writer(y, i).thread[0] for i in (0, 3, 4, 99)] == [0, 0, 1, 24]
    narrow, y = witnessed("if (i < 4 * n) ((char *)y)[i] = 0;", grid=13)
    assert narrow.writer(y, 99).block == (12, 0, 0)
    assert narrow.writer(y, 99).thread == (15, 0, 0)


def test_an_atomic_operation_is_told_from_a_store():
    witness, y = witnessed("if (i < n) atomicAdd(y + i / 2, 1);")
    assert witness.writer(y, 3) == Deed(0, 4, (7, 0, 0), (0, 0, 0), atomic=True)


def test_launches_are_told_apart():
    witness, y = witnessed("if (i < n && (y[i] < 50 || i == 7)) y[i] = 50;", times=2, unwritten=False)
    assert [witness.writer(y, i) and witness.writer(y, i).launch for i in (7, 8, 60)] == [1, 0, None]


def test_of_a_sample_the_blocks_are_those_of_the_grid():
    witness, y = witnessed("if (i < n) y[i] = x[i];", blocks=2)
    assert witness.writer(y, 99).block == (3, 0, 0)


@pytest.mark.parametrize("body", ["if (i < n) y[i] += x[i];", "if (i < n) atomicAdd(y + i, 1);"])
def test_reading_what_nobody_wrote_is_remembered(body):
    witness, y = witnessed(body)
    read = witness.unwritten_read
    assert (read.buffer, read.element) == (y, 0)
    assert (read.deed.line, read.deed.thread) == (4, (0, 0, 0))
    assert witnessed(body, unwritten=False)[0].unwritten_read is None


def test_reading_what_oneself_wrote_is_no_such_read():
    assert witnessed("if (i < n) { ((volatile int *)y)[i] = 1; y[i] += x[i]; }")[0].unwritten_read is None


def test_a_race_is_found_as_without_a_witness():
    with pytest.raises(KernelFault, match="nothing orders them"):
        witnessed("if (i < n) y[i / 64] = i;")


def test_arrays_far_apart_tell_what_an_index_was_meant_for():
    body = "if (i == 0) y[0] = x[i + 1200];"
    witnessed(body)  # in the next array
    with pytest.raises(KernelFault, match="past the end of x: element 1200 of"):
        witnessed(body, gap=1 << 36)
