# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a notebook shows of a run: tables that are whole without scripts, whatever a file's texts hold."""

from dataclasses import replace

import pytest
from page_reader import PageReader
from synthetic_runs import HOSTILE, RUNS, counted_run, many_run

from gpuprof.api.comparing import compare, fleet
from gpuprof.api.measured_run import MeasuredRun
from gpuprof.report.document_page import render_notebook
from gpuprof.report.run_text import run_report
from gpuprof.results import Run as Record

ONLY = {"div", "p", "b", "table", "caption", "thead", "tbody", "tr", "th", "td"}


def shown(run: Record) -> PageReader:
    return PageReader(render_notebook(run_report(run)))


def test_a_long_run_is_cut_and_says_so() -> None:
    run = many_run()
    page = shown(run)
    assert f"{len(run.cases) - 100} more cases are in the whole report" in page.text
    assert [tag for tag, _ in page.tags].count("tr") == 101


def test_hostile_texts_stay_text() -> None:
    run = RUNS["hostile"]()
    page = shown(run)
    escaped = HOSTILE.replace("\u202e", "\\u202e").replace("\u202c", "\\u202c").replace("\x1b", "\\u001b")
    assert escaped in page.text
    operation = replace(next(iter(run.operations.values())), title=HOSTILE)
    named = replace(run, operations=dict.fromkeys(run.operations, operation))
    assert shown(named).tags == page.tags


@pytest.mark.parametrize("name", ["gemm", "transpose", "referenced", "hostile"])
def test_a_comparison_shows_itself_as_a_run_does(name: str) -> None:
    run = MeasuredRun(RUNS[name]())
    comparison = compare(run, run)
    page = PageReader(comparison._repr_html_())
    assert {tag for tag, _ in page.tags} <= ONLY
    assert {key for _, attributes in page.tags for key in attributes} <= {"style"}
    kernels = {case.kernel for case in comparison.cases if not case.new.is_reference} - {HOSTILE}
    assert all(kernel in page.text for kernel in kernels)
    assert PageReader(fleet([run])._repr_html_()).tags


def test_a_measured_case_has_its_share_of_the_bound() -> None:
    (case,) = MeasuredRun(counted_run()).find(kernel="reg_2x1")
    assert case.bound_by == "l1"
    assert 92 < case.pct_of_bound < 94
    assert case.pct_of_bound == pytest.approx(100 * case.bound_us / case.median_us)
