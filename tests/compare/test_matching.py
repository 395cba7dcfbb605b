# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which case belongs to which."""

from dataclasses import replace

from compared_runs import gemm_case, run, runs

from gpuprof.comparison.matching import match

SMALL = runs.Gemm(128, 128, 128)


def of(*cases, **fields):
    return replace(run("gpu", [], [], **fields), cases=cases)


def test_cases_of_other_sizes_types_and_scalars_are_not_matched():
    case = gemm_case("k", SMALL, 9.0)
    for problem in (
        replace(SMALL, sizes={"M": 128, "N": 128, "K": 64}),
        replace(SMALL, dtype="f64"),
        replace(SMALL, scalars={"alpha": 2.0, "beta": 0.0}),
        replace(SMALL, options={"layout": "column"}),
    ):
        pairs = match(of(case), of(replace(case, problem=problem)))
        assert [(pair.base is None, pair.new is None) for pair in pairs] == [(True, False), (False, True)]


def test_a_changed_block_or_parameter_is_matched_and_told():
    case = replace(gemm_case("k", SMALL, 9.0), params={"BK": 8})
    other = replace(case, block=(8, 32, 1), params={"BK": 16, "TM": 4})
    (pair,) = match(of(case), of(other))
    assert pair.moved == ("block 32x32 → 8x32", "BK 8 → 16", "TM – → 4")


def test_a_sweep_is_matched_case_by_case():
    blocks = [replace(gemm_case("k", SMALL, 9.0), block=(8, y, 1)) for y in (8, 16, 32)]
    pairs = match(of(*blocks[:2]), of(*blocks[1:]))
    assert [(pair.base, pair.new) for pair in pairs] == [
        (blocks[1], blocks[1]),
        (None, blocks[2]),
        (blocks[0], None),
    ]


def test_in_a_run_on_several_devices_the_device_counts():
    case = gemm_case("k", SMALL, 9.0)
    devices = (runs.DEVICE, replace(runs.DEVICE, name="Another"))
    there = replace(of(case, replace(case, device=1)), devices=devices)
    back = replace(of(replace(case, device=1), case), devices=devices)
    pairs = match(there, back)
    assert [(pair.base.device, pair.new.device) for pair in pairs] == [(1, 1), (0, 0)]


def test_a_kernel_that_chooses_is_matched_whatever_it_chose():
    case = replace(gemm_case("by_size", SMALL, 9.0), chosen="a")
    other = replace(case, chosen="b", block=(64, 1, 1), source_hash="1" * 64)
    (pair,) = match(of(case), of(other))
    assert (pair.base, pair.new) == (case, other)
