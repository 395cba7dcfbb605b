# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a notebook shows of a run: tables that are whole without scripts, whatever a file's texts hold."""

from dataclasses import replace

import pytest
from page_reader import PageReader
from synthetic_runs import HOSTILE, RUNS, all_failed_run, gemm_run, many_run, transpose_run, tuned_run

from gpuprof.report.notebook import render_notebook


@pytest.mark.parametrize("name", RUNS)
def test_only_tables_and_texts(name: str) -> None:
    page = PageReader(render_notebook(RUNS[name]()))
    allowed = {"div", "p", "b", "table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert {tag for tag, _ in page.tags} <= allowed
    assert {key for _, attributes in page.tags for key in attributes} <= {"style"}
    opened = [tag for tag, _ in page.tags]
    assert opened.count("table") == opened.count("caption")


def test_a_row_for_each_case_and_the_answer() -> None:
    run = transpose_run()
    page = PageReader(render_notebook(run))
    assert page.text.count("copy_row | 16x16 | ✓ ok") == 1
    assert [tag for tag, _ in page.tags].count("tr") > len(run.cases)
    assert "naive_col | 8x32 | ✓ ok | 17.2 µs" in page.text.replace(" ~", "")
    assert "Fastest 2048: naive_col 8x32, 17.2 µs" in page.text
    assert "Best of 12 sets of parameters of mine" in PageReader(render_notebook(tuned_run())).text


def test_reasons_stand_below() -> None:
    text = PageReader(render_notebook(all_failed_run())).text
    assert "✗ naive 512x1024x256 failed: NVRTC: error: identifier x is undefined." in text


def test_a_long_run_is_cut_and_says_so() -> None:
    run = many_run()
    page = PageReader(render_notebook(run))
    assert f"{len(run.cases) - 100} more cases are in the whole report" in page.text
    assert [tag for tag, _ in page.tags].count("tr") == 101


def test_hostile_texts_stay_text() -> None:
    run = RUNS["hostile"]()
    page = PageReader(render_notebook(run))
    shown = HOSTILE.replace("\u202e", "\\u202e").replace("\u202c", "\\u202c").replace("\x1b", "\\u001b")
    assert shown in page.text
    operation = replace(next(iter(run.operations.values())), title=HOSTILE)
    named = replace(run, operations=dict.fromkeys(run.operations, operation))
    assert PageReader(render_notebook(named)).tags == page.tags


def test_colours_are_those_around() -> None:
    styles = " ".join(PageReader(render_notebook(gemm_run())).attributes("style"))
    assert "#" not in styles
    assert "background" not in styles
