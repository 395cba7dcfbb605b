# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""GEMMs on tensor cores in FP64, TF32 and 8-bit floats: right at sizes that fit no tile."""

import pytest
from problem_support import find_kernel, measured, problem_for

from gpuprof.bounds.floors import with_bounds
from gpuprof.devices.cards import load_card

pytestmark = pytest.mark.deep

RUNGS = ("dmma", "dmma_split")
#: Rows of odd lengths, which are copied by elements, and of even ones; k of less than a tile and of many.
RAGGED = [(1, 1, 1), (3, 2, 5), (65, 67, 69), (129, 66, 34), (64, 65, 130), (30, 130, 17)]
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


def measure(name, size, params=None, card="h200", **scalars):
    kernel = find_kernel("gemm", name)
    problem = problem_for(kernel, *size, dtype="f64", **scalars)
    return measured(kernel, problem, None, params, card=card)


@pytest.mark.parametrize("name", RUNGS)
@pytest.mark.parametrize(
    ("card", "size"), [*(("h200", size) for size in RAGGED), *(("a100-80gb", size) for size in RAGGED[2:4])]
)
def test_right_at_every_size(name, card, size):
    scalars = {"alpha": -1.5, "beta": 0.75} if size[0] % 2 else {}
    measurement = measure(name, size, card=card, **scalars)
    assert measurement.outcome == "ok", measurement.reason


@pytest.mark.parametrize("params", [*OTHERS, {**SMALL, "WAYS": 2}], ids=str)
def test_right_with_other_tiles_and_depths(params):
    for size in (131, 70, 98), (65, 129, 49):
        measurement = measure("dmma", size, params)
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


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"STAGES": 2}, "three STAGES or more"),
        ({"DEPTH": 16}, "two DEPTH or more"),
        ({"DEPTH": 12}, "DEPTH 4, 8 or 16"),
        ({"WN": 8}, "a multiple of 16 rows and 16 columns"),
        ({"WN": 64}, "at most 2048"),
        ({"BM": 64, "WM": 64, "WN": 64, "BN": 128, "PANEL": 0}, "at most 2048"),
        ({"PANEL": 0}, "one tile row or more"),
        ({"BM": 32, "BN": 128, "WM": 32, "WN": 64}, "copies whole rows by all threads"),
    ],
)
def test_what_the_header_rules_out_is_skipped_with_its_sentence(params, words):
    measurement = measure("dmma", (64, 64, 64), params)
    assert measurement.outcome == "skipped"
    assert words in measurement.reason


#: Rows of any length, copied by elements; the copy engine takes multiples of four.
TF32_RAGGED = {
    "tf32x3_mma": [(1, 1, 1), (33, 35, 17), (129, 140, 37)],
    "tf32x3": [(1, 4, 4), (20, 36, 12), (257, 260, 68)],
    "tf32": [(1, 4, 4), (257, 260, 100), (130, 252, 36)],
    "tf32_64": [(1, 68, 4), (129, 140, 100)],
    "tf32_64_beside": [(129, 300, 100)],
    "tf32_split": [(1, 4, 4), (130, 140, 500)],
    "tf32_packed": [(1, 1, 1), (301, 139, 103)],
    "tf32_gathered": [(1, 1, 1), (129, 67, 101)],
    "e4m3": [(1, 8, 16), (257, 264, 272)],
    "e4m3_64_fit": [(1, 8, 16), (131, 152, 144)],
    "e4m3_64_pairs": [(1, 8, 16), (131, 280, 144)],
    "e4m3_64_below": [(300, 152, 144)],
    "e4m3_192_beside": [(131, 200, 144)],
    "e4m3_turns": [(1290, 2088, 16)],
    "e4m3_split": [(1, 8, 16), (130, 136, 1040)],
}
THREE_PRODUCTS = ("tf32x3_mma", "tf32x3")


def measure_of(name, size, **scalars):
    kernel = find_kernel("gemm", name)
    return measured(kernel, problem_for(kernel, *size, dtype=kernel.dtypes[0], **scalars))


@pytest.mark.parametrize(
    ("name", "size"), [(name, size) for name, sizes in TF32_RAGGED.items() for size in sizes]
)
def test_right_at_every_size_of_every_type(name, size):
    measurement = measure_of(name, size, **({"alpha": -1.5, "beta": 0.75} if size[0] % 2 else {}))
    assert measurement.outcome == "ok", measurement.reason
    assert measurement.resources.spill_bytes == 0


@pytest.mark.parametrize("name", THREE_PRODUCTS)
def test_exact_as_fp32_and_without_bank_conflicts(name):
    m, n, k = size = 256, 128, 512
    measurement = measure_of(name, size)
    # One product of TF32 would be off by thousands of roundoffs.
    simple = measure_of("naive", size).verification.max_rel_error
    assert measurement.verification.max_rel_error < simple < 4 * 2**-24
    counters = measurement.counters
    assert counters["tensor_tf32_operations"].value == 3 * 2 * m * n * k
    for kind in ("shared_load", "shared_store", "async_copy_shared"):
        # What the copy engine stores, no counter sees.
        assert counters[f"{kind}_bank_conflicts"].value in (0, None), kind
