# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The fastest GEMM kernels on the executor: right where rows start anywhere and tiles are cut off."""

from dataclasses import replace

import pytest
from problem_support import executor, find_kernel, problem_for

from gpuprof.backends.sim.backend import SimBackend
from gpuprof.devices.cards import load_card
from gpuprof.measure.case import Case
from gpuprof.measure.execute import Compiler, measure_case

pytestmark = pytest.mark.deep

#: Kernels at sizes that fit no tile, in which A, B, both or neither have rows of whole 16-byte pieces; tiles
#: are shared by several blocks.
CASES = [
    ("packed_8x8", (65, 67, 69)),
    ("packed_8x8", (1, 1, 1)),
    ("packed_8x8", (64, 260, 34)),
    ("streamk_8x8", (67, 260, 100)),
    ("packed_8x16", (65, 67, 69)),
    ("packed_8x16", (64, 66, 36)),
    ("realigned_8x8", (97, 133, 33)),
    ("realigned_8x8", (4, 5, 7)),
    ("realigned_8x8", (129, 66, 50)),
    ("realigned_8x8", (131, 260, 67)),
    ("realigned_8x8_alone", (5, 130, 36)),
    ("few_rows", (1, 133, 517)),
    ("few_rows", (3, 132, 1037)),
    ("few_rows", (13, 260, 36)),
    ("few_rows_six", (2, 133, 517)),
    ("few_rows_two", (9, 260, 36)),
    ("streamk_8x8_tall", (261, 60, 100)),
    ("streamk_8x8_tall", (300, 4, 20)),
    ("splitk_44x64", (45, 131, 65)),
    ("splitk_44x64", (130, 68, 132)),
    ("splitk_64x64", (65, 67, 69)),
    ("splitk_64x64", (64, 68, 132)),
    ("short_k_44x96", (45, 131, 65)),
    ("short_k_44x96", (3, 2, 1)),
    ("short_k_52x96", (107, 97, 77)),
    ("shifted_80x64", (83, 66, 130)),
    ("shifted_80x64", (73, 67, 141)),
    ("shifted_80x64", (5, 72, 193)),
    ("shifted_80x64", (1, 1, 1)),
    ("dmma_64x64_split", (65, 67, 69)),
    ("dmma_64x64_split_four", (66, 130, 10)),
]
#: Kernels for a C of so many elements an SM, on a GPU of few SMs.
SHARED = [
    ("splitk_64x64_even", "f32", (97, 133, 197)),
    ("splitk_64x64_even", "f32", (132, 100, 300)),
    ("dmma_64x64_even", "f64", (97, 133, 197)),
    ("dmma_64x64_even", "f64", (132, 100, 98)),
]


def case(name, size, **options):
    kernel = find_kernel("gemm", name)
    return Case.of(kernel, problem_for(kernel, *size, **{"dtype": kernel.dtypes[0], **options}))


def measure(name, size, **options):
    return measure_case(case(name, size, **options), *executor(blocks=0))[0]


@pytest.fixture(scope="module")
def measure_small():
    """On an H200 of five SMs."""
    backend = SimBackend(replace(load_card("h200"), sm_count=5), seed=0, blocks=0)
    compiler = Compiler(backend.compile_arch)
    return lambda *which, **options: measure_case(case(*which, **options), backend, compiler)[0]


@pytest.mark.parametrize(("name", "size"), CASES, ids=str)
def test_right_where_tiles_are_cut_off(name, size):
    for scalars in ({}, {"alpha": -1.5, "beta": 0.75}):
        measurement = measure(name, size, **scalars)
        assert measurement.outcome == "ok", measurement.reason


@pytest.mark.parametrize(("name", "dtype", "size"), SHARED, ids=str)
def test_right_where_blocks_share_tiles(measure_small, name, dtype, size):
    for scalars in ({}, {"alpha": -1.5, "beta": 0.75}):
        measurement = measure_small(name, size, dtype=dtype, **scalars)
        assert measurement.outcome == "ok", measurement.reason
        assert measurement.counters["global_atomic_requests"].value > 0


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("few_rows", (17, 64, 64)),
        ("streamk_8x8_tall", (256, 128, 64)),
        ("streamk_8x8_tall", (1024, 196, 64)),
        ("splitk_64x64_even", (128, 128, 128)),
        ("splitk_64x64_even", (4096, 4096, 4096)),
    ],
    ids=str,
)
def test_a_kernel_for_special_shapes_is_skipped_at_others(name, size):
    measurement = measure(name, size)
    assert measurement.outcome == "skipped"
    assert " is for a C of " in measurement.reason or " for a tall C of " in measurement.reason


@pytest.mark.parametrize(
    ("size", "rows"), [((8, 8, 8), 0), ((8, 8, 9), 8), ((8, 9, 8), 8), ((8, 9, 9), 8 + 9)], ids=str
)
def test_only_rows_that_need_it_are_packed(size, rows):
    measurement = measure("packed_8x8", size)
    assert measurement.outcome == "ok", measurement.reason
    # A warp stores a row that it packs at once; one stores zeros to C, and a thread resets two counters.
    assert measurement.counters["global_store_requests"].value == 1 + 2 + rows
