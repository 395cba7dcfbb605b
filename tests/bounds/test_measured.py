# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A floor is a floor: no bound of any shipped kernel lies above a time that a card was measured to take.

The files hold times of a card and counts of the executor, as benchmarks/floors.py keeps them; the bounds are
reckoned here, by today's code.
"""

import statistics
import sys
from functools import cache
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from floors import bounded

FILES = sorted(Path(__file__).parent.glob("measured-*.json.xz"))


@cache
def cases_of(file):
    return [(case, found, found.bounds[found.bound_by].least_us) for case, found in bounded(file)]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_no_bound_lies_above_a_measured_time(file):
    above = [
        f"{case['kernel']} at {found.problem.label} {found.problem.dtype}: {found.bound_by} {least:.4g} us,"
        f" measured {case['median_us']:.4g} us"
        for case, found, least in cases_of(file)
        if least > case["median_us"]
    ]
    assert above == []


def test_there_are_enough_of_them():
    assert sum(len(cases_of(file)) for file in FILES) >= 600
    for file in FILES:
        operations = {found.problem.operation for _, found, _ in cases_of(file)}
        assert operations == {"gemm", "transpose", "reduce", "softmax"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_products_of_4096_take_little_more_than_their_bounds(file):
    ratios = [
        case["median_us"] / least
        for case, found, least in cases_of(file)
        if found.problem.operation == "gemm" and found.problem.label == "4096"
    ]
    assert len(ratios) > 20
    assert statistics.median(ratios) <= 1.35
