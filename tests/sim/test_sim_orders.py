# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels in other orders of their warps and blocks: what depends on the first is found, nothing else is."""

import re

import pytest
from order_sources import PAIRS, RIGHT
from problem_support import measured_file


def names(kernels):
    """The first quickly, and all others where there is time."""
    first, *others = kernels
    return [first, *(pytest.param(name, marks=pytest.mark.deep) for name in others)]


def measured(tmp_path, kernel, *, right=True):
    path = tmp_path / "k.cu"
    path.write_text(kernel.source(right=right))
    return measured_file(path, str(kernel.n))


@pytest.mark.parametrize("name", names(PAIRS))
def test_what_depends_on_the_order_is_told_with_an_element_and_both_lines(name, tmp_path):
    case = measured(tmp_path, PAIRS[name], right=False)
    assert case.outcome == "failed", case.reason
    lines = PAIRS[name].source(right=False).splitlines()
    ends = tuple(f"// {comment}" for comment in PAIRS[name].meets)
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
