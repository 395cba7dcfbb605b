# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The fastest GEMM kernels on the executor: right where rows start anywhere and tiles are cut off."""

import pytest
from problem_support import find_kernel, problem_for

from gpuprof.backends.sim.backend import SimBackend
from gpuprof.devices.cards import load_card
from gpuprof.measure.case import Case
from gpuprof.measure.execute import Compiler, measure_case

#: Kernels at sizes that fit no tile, in which A, B, both or neither have rows of whole 16-byte pieces; tiles
#: are shared by several blocks.
CASES = [
    ("packed_8x8", (65, 67, 69)),
    ("packed_8x8", (1, 1, 1)),
    ("packed_8x8", (64, 260, 34)),
    ("streamk_8x8", (67, 260, 100)),
    ("packed_8x16", (65, 67, 69)),
    ("packed_8x16", (64, 66, 36)),
    ("packed_8x8_square", (97, 133, 33)),
    ("packed_8x8_square", (3, 4, 5)),
]


@pytest.fixture(scope="module")
def measure():
    backend = SimBackend(load_card("h200"), seed=0, blocks=0)
    compiler = Compiler(backend.compile_arch)

    def run(name, size, **scalars):
        kernel = find_kernel("gemm", name)
        problem = problem_for(kernel, *size, **scalars)
        return measure_case(Case.of(kernel, problem, None), backend, compiler)[0]

    return run


@pytest.mark.parametrize(("name", "size"), CASES, ids=str)
def test_right_where_tiles_are_cut_off(measure, name, size):
    for scalars in ({}, {"alpha": -1.5, "beta": 0.75}):
        measurement = measure(name, size, **scalars)
        assert measurement.outcome == "ok", measurement.reason


@pytest.mark.parametrize(
    ("size", "rows"), [((8, 8, 8), 0), ((8, 8, 9), 8), ((8, 9, 8), 8), ((8, 9, 9), 8 + 9)], ids=str
)
def test_only_rows_that_need_it_are_packed(measure, size, rows):
    measurement = measure("packed_8x8", size)
    assert measurement.outcome == "ok", measurement.reason
    # A warp stores a short row at once, whether one of C or one that it packs.
    assert measurement.counters["global_store_requests"].value == 8 + rows
