# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The Markdown report: whole tables, and nothing in a text can break out of its cell."""

import re
from dataclasses import replace

import pytest
from synthetic_runs import RUNS

from gpuprof.report.markdown import markdown_of
from gpuprof.report.run_text import run_report


@pytest.mark.parametrize("name", RUNS)
def test_every_row_has_as_many_cells_as_its_head_and_every_case_a_row(name: str) -> None:
    run, tables = RUNS[name](), re.findall(r"(?:^\|.*\n)+", shown(name), re.MULTILINE)
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1
    assert sum(len(table.splitlines()) - 2 for table in tables) == len(run.cases)


def shown(name: str) -> str:
    return markdown_of(run_report(RUNS[name]()))


def test_a_case_without_figures_has_its_reason_below() -> None:
    text = shown("gemm")
    assert re.search(r"^\| `smem_panel` \|.* ✗ failed (\| – )+", text, re.MULTILINE)
    assert "failed: The block needs 1,048,576 bytes" in text


def test_a_remark_of_several_cases_is_told_once() -> None:
    run = RUNS["gemm"]()
    cases = [replace(case, remarks=("Its times are odd",)) for case in run.cases]
    (line,) = (
        row for row in markdown_of(run_report(replace(run, cases=cases))).split("\n") if "are odd" in row
    )
    sizes = {
        case.kernel: ", ".join(c.problem.label for c in cases if c.kernel == case.kernel) for case in cases
    }
    assert all(f"{kernel} {held}" in line.replace("\\", "") for kernel, held in sizes.items())


def test_hostile_strings_stay_text() -> None:
    text = shown("hostile")
    assert "<img" not in text
    assert "&lt;img src=x" in text
