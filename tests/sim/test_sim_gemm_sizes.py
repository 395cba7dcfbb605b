# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The fastest GEMM kernels on the executor: right where rows start anywhere and tiles are cut off."""

import pytest
from problem_support import executor, find_kernel, problem_for

from gpuprof.measure.case import Case
from gpuprof.measure.execute import measure_case

pytestmark = pytest.mark.deep

#: What stores everything that 1 and 0 have stored, and reads C before: with 0 it is not read, as the tests of
#: what headers claim see of each kernel.
SCALARS = {"alpha": -1.5, "beta": 0.75}
#: Kernels at sizes that fit no tile, in which A, B, both or neither have rows of whole 16-byte pieces; tiles
#: are shared by several blocks.
CASES = [
    ("streamk", (101, 516, 36), {}),
    ("streamk_fit", (67, 260, 100), {"SCALE_FIRST": 0}),
    ("streamk_fit", (64, 260, 100), {}),
    ("streamk_fit", (130, 132, 68), {}),
    ("streamk_fit", (130, 132, 68), {"SCALE_FIRST": 0, "ROWS": 64}),
    ("streamk_fit", (261, 60, 100), {}),
    ("packed", (1, 1, 1), {}),
    ("realigned", (4, 5, 7), {}),
    ("realigned", (129, 66, 50), {}),
    ("realigned", (131, 260, 67), {}),
    ("realigned", (5, 130, 36), {"SM_BLOCKS": 1}),
    ("bulk_8x16", (261, 516, 20), {"PANEL": 2}),
    ("few_rows", (1, 133, 517), {}),
    ("few_rows", (3, 132, 1037), {"CLUSTER": 8}),
    ("splitk", (33, 67, 69), {}),
    ("splitk_8x32", (9, 35, 131), {}),
    ("splitk_16x32", (17, 36, 68), {}),
    ("splitk_fit", (45, 131, 65), {}),
    ("splitk_fit", (25, 131, 390), {"TM": 6, "WAYS": 3}),
    ("splitk_16x32", (17, 33, 520), {}),
    ("splitk_fit", (5, 68, 260), {"WAYS": 24, "TN": 8}),
    ("splitk_tall", (131, 67, 90), {}),
    ("splitk_tall", (261, 68, 33), {"TALL": 4, "TM": 0}),
    ("splitk_tall", (66, 35, 200), {"TALL": 1, "WAYS": 3}),
    ("splitk_tall", (133, 67, 21), {"TALL": 4, "TM": 4}),
    ("short_k", (133, 131, 41), {}),
    ("short_k", (20001, 9, 70), {}),
    ("short_k", (77, 20, 31), {"ROWS": 2}),
    ("short_k", (67, 260, 32), {"LINE": 64, "ROWS": 4}),
    ("reg_8x8", (129, 260, 18), {"TN": 16}),
    ("dmma_split_32x64", (33, 66, 70), {}),
    ("dmma_split_32x32", (66, 130, 10), {}),
    ("dmma_split_32x32", (17, 20, 300), {"WAYS": 16}),
    ("dmma_split_16x16", (18, 35, 200), {"WAYS": 2}),
    ("wgmma_split_pairs", (130, 136, 72), {}),
    ("wgmma_split_pairs", (193, 72, 520), {"WAYS": 3}),
    ("wgmma_store_256", (265, 200, 136), {}),
]
#: Kernels whose blocks share tiles, on a GPU of few SMs.
SHARED = [
    ("streamk", (193, 260, 100), {}),
    ("streamk_fit", (132, 100, 300), {"SCALE_FIRST": 0}),
    ("streamk_fit", (132, 100, 300), {}),
    ("packed", (97, 133, 197), {}),
    ("realigned", (132, 101, 301), {}),
]


def case(name, size, params, **options):
    kernel = find_kernel("gemm", name)
    problem = problem_for(kernel, *size, **{"dtype": kernel.dtypes[0], **options})
    return Case.of(kernel, problem, None, params)


def measure(name, size, params, sms=0, **options):
    return measure_case(case(name, size, params, **options), *executor(blocks=0, sms=sms))[0]


@pytest.mark.parametrize(("name", "size", "params"), CASES, ids=str)
def test_right_where_tiles_are_cut_off(name, size, params):
    measurement = measure(name, size, params, **SCALARS)
    assert measurement.outcome == "ok", measurement.reason


@pytest.mark.parametrize(("name", "size", "params"), SHARED, ids=str)
def test_right_where_blocks_share_tiles(name, size, params):
    measurement = measure(name, size, params, sms=5, **SCALARS)
    assert measurement.outcome == "ok", measurement.reason
    assert measurement.counters["global_atomic_requests"].value > 0


@pytest.mark.parametrize(("name", "size"), [("few_rows", (17, 64, 64)), ("realigned", (8, 8, 8))], ids=str)
def test_a_kernel_for_special_sizes_is_skipped_at_others(name, size):
    measurement = measure(name, size, {})
    assert measurement.outcome == "skipped"
    assert " is for " in measurement.reason


def test_only_rows_that_need_it_are_packed():
    stores = [
        measure("packed", size, {}).counters["global_store_requests"].value
        for size in ((8, 8, 8), (8, 8, 9), (8, 9, 8), (8, 9, 9))
    ]
    # A warp stores a row that it packs at once: eight of A, and as many of B as there are k.
    assert [each - stores[0] for each in stores[1:]] == [8, 8, 8 + 9]
