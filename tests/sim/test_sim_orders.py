# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels in other orders of their warps and blocks: what depends on the first is found, nothing else is."""

import re
from pathlib import Path

import pytest
from cuda_sources import either, kernel_table
from problem_support import measured_file

KERNELS = kernel_table(Path(__file__).parent / "orders.cu")
#: Those that depend on the order, each with a right twin; and those that look as if they did.
PAIRS = {name: row for name, row in KERNELS.items() if row.told["meets"]}
RIGHT = {name: row for name, row in KERNELS.items() if not row.told["meets"]}


def names(kernels):
    """The first quickly, and all others where there is time."""
    first, *others = kernels
    return [first, *(pytest.param(name, marks=pytest.mark.deep) for name in others)]


def measured(tmp_path, kernel, *, right=True):
    path = tmp_path / "k.cu"
    path.write_text(either(kernel.text, first=not right))
    return measured_file(path, str(kernel.told["n"]))


@pytest.mark.parametrize("name", names(PAIRS))
def test_what_depends_on_the_order_is_told_with_an_element_and_both_lines(name, tmp_path):
    case = measured(tmp_path, PAIRS[name], right=False)
    assert case.outcome == "failed", case.reason
    lines = either(PAIRS[name].text, first=True).splitlines()
    ends = tuple(f"// {comment}" for comment in PAIRS[name].told["meets"])
    meeting = {number for number, line in enumerate(lines, 1) if line.endswith(ends)}
    explanation = case.explanation
    found = re.search(r" in line (\d+), and nothing orders the two: y\[\d+\] is ", explanation.text)
    assert found, explanation.text
    assert {explanation.line, int(found[1])} == meeting, explanation.text
    assert (explanation.cause, explanation.array) == ("race", "y")


@pytest.mark.parametrize("name", names(PAIRS))
def test_its_twin_is_right(name, tmp_path):
    case = measured(tmp_path, PAIRS[name])
    assert case.outcome == "ok", case.reason


@pytest.mark.parametrize("name", names(RIGHT))
def test_who_comes_first_does_not_matter(name, tmp_path):
    case = measured(tmp_path, RIGHT[name])
    assert case.outcome == "ok", case.reason
