# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The fastest GEMM kernels on the executor: right where rows start anywhere and tiles are cut off."""

import pytest
from problem_support import find_kernel, problem_for

from gpuprof.backends.sim.backend import SimBackend
from gpuprof.devices.cards import load_card
from gpuprof.measure.case import Case
from gpuprof.measure.execute import Compiler, measure_case

#: Sizes that fit no tile, in which A, B, both or neither have rows of whole 16-byte pieces; some have tiles
#: that several blocks share.
SIZES = [(65, 67, 69), (129, 97, 33), (1, 1, 1), (3, 4, 5), (64, 66, 68), (64, 68, 66), (100, 516, 36)]
KERNELS = ("packed_8x16", "packed_12x16")


@pytest.fixture(scope="module")
def measure():
    backend = SimBackend(load_card("h200"), seed=0, blocks=0)
    compiler = Compiler(backend.compile_arch)

    def run(name, size, params=None, **scalars):
        kernel = find_kernel("gemm", name)
        problem = problem_for(kernel, *size, **scalars)
        return measure_case(Case.of(kernel, problem, None, params or {}), backend, compiler)[0]

    return run


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_right_at_every_size(measure, name, size):
    for scalars in ({}, {"alpha": -1.5, "beta": 0.75}):
        measurement = measure(name, size, **scalars)
        assert measurement.outcome == "ok", measurement.reason


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(
    ("size", "rows"), [((8, 8, 8), 0), ((8, 8, 9), 8), ((8, 9, 8), 8), ((8, 9, 9), 8 + 9)], ids=str
)
def test_only_rows_that_need_it_are_packed(measure, name, size, rows):
    measurement = measure(name, size)
    assert measurement.outcome == "ok", measurement.reason
    # A warp stores a short row at once, whether one of C or one that it packs.
    assert measurement.counters["global_store_requests"].value == 8 + rows
