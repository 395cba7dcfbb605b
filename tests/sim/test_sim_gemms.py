# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The fastest GEMM kernels on the executor: right where rows start anywhere and tiles are cut off."""

import pytest
from problem_support import executor, find_kernel, problem_for

from gpuprof.bounds.floors import with_bounds
from gpuprof.devices.cards import load_card
from gpuprof.kernels.shape import values_of
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
    ("streamk_fit", (130, 132, 68), {}),
    ("streamk_fit", (130, 132, 68), {"SCALE_FIRST": 0, "ROWS": 64}),
    ("streamk_fit", (261, 60, 100), {}),
    ("streamk_small", (130, 132, 68), {}),
    ("streamk_small", (67, 260, 36), {}),
    ("streamk_small", (261, 28, 68), {}),
    ("packed", (1, 1, 1), {}),
    ("realigned", (4, 5, 7), {}),
    ("realigned", (129, 66, 50), {}),
    ("realigned", (131, 260, 163), {}),
    ("realigned", (5, 130, 36), {"SM_BLOCKS": 1}),
    ("realigned_fit", (67, 131, 35), {}),
    ("realigned_fit", (130, 67, 200), {}),
    ("realigned_fit", (67, 257, 36), {"ROWS": 128}),
    ("realigned_fit", (259, 31, 37), {}),
    ("realigned", (259, 51, 37), {}),
    ("bulk_8x16", (261, 516, 20), {"PANEL": 2}),
    ("few_rows", (1, 133, 517), {}),
    ("few_rows", (3, 132, 1037), {"CLUSTER": 8}),
    ("splitk", (33, 67, 69), {}),
    ("splitk_8x32", (9, 35, 131), {}),
    ("splitk_16x32", (17, 36, 68), {}),
    ("splitk_fit", (45, 131, 65), {}),
    ("splitk_fit", (25, 131, 390), {"TM": 6, "WAYS": 3}),
    ("splitk_16x32", (17, 33, 520), {}),
    ("splitk_fit", (5, 68, 260), {"WAYS": 24, "TN": 8, "TM": 2}),
    ("splitk_tall", (131, 67, 90), {}),
    ("splitk_tall", (261, 68, 33), {"TALL": 4, "TM": 0}),
    ("splitk_tall", (66, 35, 200), {"TALL": 1, "WAYS": 3}),
    ("splitk_tall", (133, 67, 21), {"TALL": 4, "TM": 4}),
    ("short_k", (133, 131, 41), {}),
    ("short_k", (20001, 9, 70), {}),
    ("short_k", (77, 20, 31), {"ROWS": 2}),
    ("short_k", (67, 260, 32), {"LINE": 64, "ROWS": 4}),
    ("reg_8x8", (129, 260, 18), {"TN": 16}),
    ("dmma_128x64", (130, 66, 35), {}),
    ("dmma_split_32x64", (33, 66, 70), {}),
    ("dmma_split_32x32", (66, 130, 10), {}),
    ("dmma_split_32x32", (17, 20, 300), {"WAYS": 16}),
    ("dmma_split_16x16", (18, 35, 200), {"WAYS": 2}),
    ("dmma_split", (66, 131, 150), {"WAYS": 3, "LONG": 1}),
    ("dmma_split_32x32", (34, 33, 200), {"WAYS": 5, "LONG": 1}),
    ("dmma_split_64x32", (65, 36, 100), {"WAYS": 3}),
    ("wgmma_split", (193, 72, 520), {"NARROWEST": 128, "BELOW": 2, "WAYS": 3}),
    ("wgmma_split_below", (265, 200, 136), {}),
    ("wgmma_split_128_2x2", (265, 200, 136), {}),
    ("wgmma_split_128_4", (265, 200, 520), {"GRAIN": 16, "WIDEST": 160}),
    ("wgmma_split_turned", (136, 1800, 520), {}),
    ("wgmma_store_2x2", (265, 200, 136), {}),
    ("wgmma_store_256", (530, 392, 136), {}),
    ("wgmma_store_turned", (265, 200, 136), {}),
    ("wgmma_store_turned_2x2", (265, 200, 136), {}),
    ("wgmma_store_turned_2x4", (265, 200, 136), {}),
    ("wgmma_store_turned_64", (265, 200, 136), {}),
    ("wgmma_store_turns", (265, 400, 136), {}),
    ("wgmma_store_turns", (265, 200, 136), {"TURNED": 1, "WIDEST": 160, "GRAIN": 16}),
    ("wgmma_packed", (173, 275, 50), {}),
    ("wgmma_packed", (100, 201, 50), {}),
    ("tf32_packed", (173, 95, 50), {}),
    ("wgmma_gathered", (67, 61, 516), {"WAYS": 8}),
    ("tf32_gathered", (129, 67, 36), {"WAYS": 1}),
    ("wgmma_gathered", (131, 67, 36), {"DEEP": 2}),
    ("wgmma_gathered", (70, 65, 198), {"WAYS": 1, "DEEP": 2}),
    ("e4m3_gathered", (5, 3, 330), {"WAYS": 1, "DEEP": 2}),
    ("e4m3_gathered", (70, 65, 396), {"WAYS": 1, "DEEP": 2}),
    ("wgmma_gathered_short", (131, 67, 36), {}),
    ("wgmma_gathered_short", (66, 129, 61), {}),
]
#: Kernels whose blocks share tiles, on a GPU of few SMs.
SHARED = [
    ("streamk", (193, 260, 36), {}),
    ("streamk_fit", (132, 100, 300), {"SCALE_FIRST": 0}),
    ("streamk_fit", (132, 100, 300), {}),
    ("streamk_small", (260, 28, 300), {}),
    ("packed", (97, 133, 37), {}),
    ("realigned", (132, 101, 301), {}),
    ("realigned_fit", (132, 133, 101), {}),
    ("realigned_fit", (260, 31, 301), {}),
    ("realigned", (515, 55, 301), {}),
]
DOUBLES = [(1, 1, 1), (3, 2, 5), (65, 67, 69), (129, 66, 34), (64, 65, 130), (30, 130, 17)]
#: Of tensor cores: rows of any length are copied by elements; the copy engine takes multiples of 16 bytes.
RAGGED = {
    "dmma": DOUBLES,
    "dmma_split": DOUBLES,
    "tf32x3_mma": [(1, 1, 1), (33, 35, 17), (129, 140, 37)],
    "tf32x3": [(1, 4, 4), (20, 36, 12), (257, 260, 68)],
    "tf32": [(1, 4, 4), (257, 260, 100), (130, 252, 36)],
    "tf32_64": [(1, 68, 4), (129, 140, 100)],
    "tf32_64_beside": [(129, 300, 100)],
    "tf32_split": [(1, 4, 4), (130, 140, 500)],
    "tf32_split_128": [(66, 140, 260)],
    "tf32_packed": [(1, 1, 1), (301, 139, 103)],
    "tf32_gathered": [(1, 1, 1), (129, 67, 101)],
    "e4m3": [(1, 8, 16), (257, 264, 272)],
    "e4m3_turned": [(1, 8, 16), (257, 264, 272)],
    "e4m3_2x2": [(265, 200, 272)],
    "e4m3_turned_2x2": [(265, 264, 272)],
    "e4m3_64_fit": [(1, 8, 16), (131, 152, 144)],
    "e4m3_64_pairs": [(1, 8, 16), (131, 280, 144)],
    "e4m3_64_below": [(300, 152, 144)],
    "e4m3_192_beside": [(131, 200, 144)],
    "e4m3_split": [(1, 8, 16), (130, 136, 1040)],
    "e4m3_split_turned": [(1, 1608, 16), (130, 1608, 272)],
    "e4m3_turned_64": [(131, 152, 144)],
    "e4m3_split_2x2": [(265, 200, 1040)],
    "e4m3_split_128_2x2": [(265, 200, 528)],
    "e4m3_gathered": [(1, 1, 1), (129, 67, 301), (66, 131, 132), (65, 70, 264)],
}


def measure(name, size, params=None, card="h200", sms=0, assembled=False, **scalars):
    kernel = find_kernel("gemm", name)
    case = Case.of(kernel, problem_for(kernel, *size, dtype=kernel.dtypes[0], **scalars), None, params)
    return measure_case(case, *executor(card, 0, sms=sms, assembled=assembled))[0]


@pytest.mark.parametrize(("name", "size", "params"), CASES, ids=str)
def test_right_where_tiles_are_cut_off(name, size, params):
    measurement = measure(name, size, params, **SCALARS)
    assert measurement.outcome == "ok", measurement.reason


@pytest.mark.parametrize(
    ("name", "params"), [("dmma_split", {"WAYS": 3, "LONG": 1}), ("splitk_fit", {"WAYS": 24})]
)
def test_tiles_begin_at_whole_sectors_where_blocks_share_them_by_memory(name, params):
    # A variable of 16 bytes before them: copies would lie in another half of their sector than in memory.
    resources = measure(name, (64, 64, 1024), params, assembled=True).resources
    assert resources.static_shared_bytes == 0 < resources.dynamic_shared_bytes


def test_rows_that_start_anywhere_are_written_by_neighbours():
    m, n = 130, 129
    stored = measure("dmma_split", (m, n, 32)).counters["global_store_sectors"].value
    assert stored < 1.2 * m * n * 8 / 32


def test_tiles_of_fp64_fit_where_shared_memory_is_less():
    # C's rows pass by way of no more of it than the tiles take.
    measurement = measure("dmma", (130, 129, 49), {"STAGES": 3}, card="l4")
    assert measurement.outcome == "ok", measurement.reason


@pytest.mark.parametrize(
    ("name", "size", "constant", "value"),
    [
        ("splitk_tall", (1104, 1608, 184), "WARPS_M", 4),  # four tiles an SM
        ("splitk_tall", (604, 4027, 254), "WARPS_M", 2),  # five
        ("dmma_split_64x32", (504, 992, 2352), "DEEP", 6),
        ("dmma_split_64x32", (3012, 320, 40), "DEEP", 4),
        ("dmma_split_64x32", (3012, 320, 32), "DEEP", 3),
        ("dmma_split", (1280, 960, 3520), "SHARES", 3),  # and not
        ("dmma_split", (700, 300, 3000), "SHARES", 1),  # clusters find room
    ],
)
def test_tiles_follow_from_what_an_sm_has_to_do(name, size, constant, value):
    kernel = find_kernel("gemm", name)
    problem = problem_for(kernel, *size, dtype=kernel.dtypes[0])
    assert values_of(kernel, problem, {}, load_card("h200"))[constant] == value


def test_of_a_short_k_little_beyond_it_is_multiplied():
    measurement = measure("splitk_tall", (64, 64, 69))
    assert measurement.counters["ffma_thread_instructions"].value == 64 * 64 * 72


@pytest.mark.parametrize(
    ("name", "size", "card"),
    [
        *((name, size, "h200") for name, sizes in RAGGED.items() for size in sizes),
        *((name, size, "a100-80gb") for name in ("dmma", "dmma_split") for size in DOUBLES[2:4]),
    ],
)
def test_right_at_every_size_of_every_type(name, size, card):
    measurement = measure(name, size, card=card, **(SCALARS if size[0] % 2 else {}))
    assert measurement.outcome == "ok", measurement.reason


@pytest.mark.parametrize(("name", "size", "params"), SHARED, ids=str)
def test_right_where_blocks_share_tiles(name, size, params):
    measurement = measure(name, size, params, sms=5, **SCALARS)
    assert measurement.outcome == "ok", measurement.reason
    assert measurement.counters["global_atomic_requests"].value > 0


@pytest.mark.parametrize(
    ("name", "size", "blocks"),
    [
        ("e4m3_turns", (390, 520, 16), 6),
        ("e4m3", (390, 520, 272), 6),
        ("wgmma_store_fit", (400, 264, 200), 6),
        ("tf32_split", (130, 140, 100), 12),
    ],
)
def test_right_where_tiles_are_more_than_sms(name, size, blocks):
    measurement = measure(name, size, sms=6)
    assert (measurement.outcome, measurement.grid) == ("ok", (blocks, 1, 1)), measurement.reason


def test_only_rows_that_need_it_are_packed():
    stores = [
        measure("packed", size, {}).counters["global_store_requests"].value
        for size in ((8, 8, 8), (8, 8, 9), (8, 9, 8), (8, 9, 9))
    ]
    # A warp stores a row that it packs at once: eight of A, and as many of B as there are k.
    assert [each - stores[0] for each in stores[1:]] == [8, 8, 8 + 9]


#: What a GPU may run faster: all are as right.
SMALL = {"BM": 64, "BN": 64, "WM": 32, "WN": 32}
OTHERS = [
    {"DEPTH": 4},
    {"BN": 64, "DEPTH": 16, "BK": 32, "STAGES": 3},
    {"BN": 64},
    {"WM": 32, "WN": 64},
    {**SMALL, "BK": 32, "STAGES": 5},
    {**SMALL, "WN": 16, "STAGES": 3, "PANEL": 1},
    {**SMALL, "BK": 64, "WARPS_K": 2, "STAGES": 3},
]


@pytest.mark.parametrize("params", [*OTHERS, {**SMALL, "WAYS": 2}], ids=str)
def test_right_with_other_tiles_and_depths(params):
    measurement = measure("dmma", (131, 129, 49), params, assembled=True)
    assert measurement.outcome == "ok", measurement.reason
    assert measurement.resources.spill_bytes == 0
    assert measurement.counters["local_store_requests"].value == 0


@pytest.mark.parametrize(
    ("card", "params"), [("a100-80gb", {}), *(("h200", params) for params in ({}, *OTHERS))], ids=str
)
def test_shared_memory_is_read_without_bank_conflicts(card, params):
    counters = measure("dmma", (256, 128, 64), params, card).counters
    for name in ("shared_load", "shared_store", "async_copy_shared"):
        assert counters[f"{name}_bank_conflicts"].value == 0, name
    # Half a warp's doubles fill the 32 banks.
    assert counters["shared_load_wavefronts"].value == 2 * counters["shared_load_requests"].value


@pytest.mark.parametrize("name", ["h200", "a100-80gb"])
def test_large_tiles_are_bound_by_the_tensor_cores(name):
    card = load_card(name)
    sizes = m, n, k = 256, 384, 320
    case = with_bounds(measure("dmma", sizes, card=name), card)
    assert case.bound_by == "tensor_f64"
    assert case.bounds["l1"].least_us < 0.7 * case.bounds["tensor_f64"].least_us
    assert case.counters["tensor_f64_operations"].value == 2 * m * n * k
    # Six tiles on six SMs, each at the published rate.
    fmas_per_cycle = {"8.0": 64, "9.0": 128}[card.compute_capability]
    least = 128 * 128 * k / fmas_per_cycle / card.sm_clock_mhz
    assert case.bounds["tensor_f64"].least_us == pytest.approx(least)


@pytest.mark.parametrize("name", ["tf32x3_mma", "tf32x3"])
def test_exact_as_fp32_and_without_bank_conflicts(name):
    m, n, k = size = 256, 128, 128
    measurement = measure(name, size)
    # One product of TF32 would be off by thousands of roundoffs.
    simple = measure("naive", size).verification.max_rel_error
    assert measurement.verification.max_rel_error < simple < 4 * 2**-24
    counters = measurement.counters
    assert counters["tensor_tf32_operations"].value == 3 * 2 * m * n * k
    for kind in ("shared_load", "shared_store", "async_copy_shared"):
        # What the copy engine stores, no counter sees.
        assert counters[f"{kind}_bank_conflicts"].value in (0, None), kind
