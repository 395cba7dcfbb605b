# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The Markdown report: whole tables, and nothing in a text can break out of its cell."""

import re
from dataclasses import replace

import pytest
import snapshot
from synthetic_runs import RUNS, hostile_run

from gpuprof.report.markdown import markdown_of
from gpuprof.report.run_text import run_report


@pytest.mark.parametrize("name", RUNS)
def test_snapshot(name: str) -> None:
    snapshot.check(f"markdown-{name}.md", markdown_of(run_report(RUNS[name]())))


@pytest.mark.parametrize("name", RUNS)
def test_every_row_of_a_table_has_as_many_cells_as_its_head(name: str) -> None:
    for table in re.findall(r"(?:^\|.*\n)+", markdown_of(run_report(RUNS[name]())), re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}
        assert len(widths) == 1


def heads(text: str) -> list[list[str]]:
    """The headings of each table."""
    found = re.findall(r"^(\|.*)\n\|[:-]", text, re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in found]


def test_a_table_holds_what_a_page_has_room_for() -> None:
    first, second = heads(markdown_of(run_report(RUNS["referenced"]())))
    assert {"kernel", "time", "rate", "vs cuBLAS"} <= set(first)
    assert "vs cuBLAS geam" in second
    assert "warm" not in first
    assert max(len(first), len(second)) <= 12


def test_a_case_without_figures_has_its_reason_below() -> None:
    text = markdown_of(run_report(RUNS["gemm"]()))
    assert re.search(r"^\| `smem_panel` \|.* ✗ failed (\| – )+", text, re.MULTILINE)
    assert "failed: The block needs 1,048,576 bytes" in text


def test_a_remark_of_several_cases_is_told_once() -> None:
    run = RUNS["gemm"]()
    cases = [replace(case, remarks=("Its times are odd",)) for case in run.cases]
    (line,) = (
        row for row in markdown_of(run_report(replace(run, cases=cases))).split("\n") if "are odd" in row
    )
    assert all(f"{case.kernel} {case.problem.label}" in line.replace("\\", "") for case in cases)


def test_the_kernel_that_was_chosen_stands_beside_the_one_that_chose() -> None:
    text = markdown_of(run_report(RUNS["chosen"]()))
    assert re.search(r"^\| \*\*`by_size`\*\* \|.*→ float4\\_4x4 16x16", text, re.MULTILINE)
    assert "names no kernel for this size on this device." in text


def test_hostile_strings_stay_text() -> None:
    text = markdown_of(run_report(hostile_run()))
    assert "<img" not in text
    assert "&lt;img src=x" in text
