# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Sweeps over blocks: the best block, its gain, why as far as the record says, every block in Markdown."""

import re
from dataclasses import replace

import pytest
from synthetic_runs import Gemm, compiled_run, counters, gemm_case, record, run, sim_run, transpose_run

from gpuprof.analysis.blocks import build_sweeps
from gpuprof.analysis.groups import groups
from gpuprof.report.blocks_text import block_sentence
from gpuprof.report.html import render_html
from gpuprof.report.markdown import markdown_of
from gpuprof.report.run_text import run_report
from gpuprof.results import Measurement, Run

PROBLEM = Gemm(512, 512, 512)
NOT_COUNTED = "hardware counters were not asked for: add --ncu"


def timed(x: int, y: int, time_us: float, **fields: object) -> Measurement:
    case = gemm_case("mine", PROBLEM, time_us, (x, y, 1))
    return replace(case, counters={}, counters_reason=NOT_COUNTED, **fields)  # type: ignore[arg-type]


def of(*cases: Measurement) -> Run:
    return run("gpu", [record("mine", "gemm", 10)], cases)


def sentence(found: Run) -> str:
    (group,) = groups(found)
    (sweep,) = build_sweeps(found, group)
    return block_sentence(found, sweep)


def test_the_best_against_the_largest_and_the_worst() -> None:
    assert sentence(of(timed(8, 32, 10.0), timed(8, 8, 40.0), timed(32, 32, 15.0))) == (
        "Best block 8x32, 10.0 µs: 1.50× as fast as 32x32, the largest, and 4.00× as fast as 8x8, the worst."
        f" Why is not known: {NOT_COUNTED}."
        " Against 32x32 it was given: threads per block 1,024 → 256 (÷4.00)."
    )


def test_the_largest_may_be_the_worst() -> None:
    assert sentence(of(timed(8, 32, 10.0), timed(32, 32, 15.0))).startswith(
        "Best block 8x32, 10.0 µs: 1.50× as fast as 32x32, the largest and the worst. Why is not known: "
    )


def test_where_the_largest_is_best_it_is_held_against_the_worst() -> None:
    assert sentence(of(timed(8, 32, 15.0), timed(8, 8, 30.0), timed(32, 32, 10.0))).startswith(
        "Best block 32x32, 10.0 µs: 3.00× as fast as 8x8, the worst. Why is not known: "
    )


def test_what_counts_differ_in_is_the_reason() -> None:
    slow = replace(timed(32, 32, 15.0), counters=counters("ncu", global_load_sectors=4000, barriers=7))
    fast = replace(timed(8, 32, 10.0), counters=counters("ncu", global_load_sectors=1000, barriers=7))
    assert sentence(of(fast, slow)).endswith(
        "the largest and the worst, because against 32x32: global sectors 4,000 → 1,000 (÷4.00)."
    )


def test_counts_that_are_alike_are_no_reason() -> None:
    same = counters("ncu", global_load_sectors=4000)
    found = of(*(replace(timed(x, 32, 5.0 + x), counters=same) for x in (8, 32)))
    assert "Why is not known: no bound and no count of its work differs." in sentence(found)
    assert "because" not in sentence(found)


def test_a_gain_within_the_noise_is_none() -> None:
    assert "Best block 8x32, 10.0 µs: within the noise of 32x32" in sentence(
        of(timed(8, 32, 10.0), timed(32, 32, 10.01))
    )


def test_blocks_without_a_figure() -> None:
    failed = {"outcome": "failed", "reason": "no", "timing": None}
    assert sentence(of(timed(8, 32, 1.0, **failed), timed(8, 8, 1.0, **failed))) == (
        "None of 2 blocks of mine gave a figure to compare."
    )
    assert sentence(of(timed(8, 32, 10.0), timed(8, 8, 1.0, **failed))) == (
        "Best block 8x32, 10.0 µs; no other gave a figure."
    )


def test_figures_that_are_alike_name_no_best() -> None:
    like = sim_run().cases[0]
    alike = tuple(replace(like, block=(x, 8, 1)) for x in (8, 16))
    assert sentence(replace(sim_run(), cases=alike)).startswith(
        f"All 2 blocks of {like.kernel} have the same figure: "
    )


@pytest.mark.parametrize("make", [transpose_run, sim_run, compiled_run])
def test_markdown_has_every_block(make) -> None:  # type: ignore[no-untyped-def]
    found = make()
    like = found.cases[0]
    blocks = [(8, 8), (8, 32), (32, 4), (32, 32)]
    swept = replace(found, cases=tuple(replace(like, block=(x, y, 1)) for x, y in blocks))
    text = markdown_of(run_report(swept))
    rows = re.findall(r"^\| \**(\d+x\d+)", text, re.MULTILINE)
    assert sorted(rows) == sorted(f"{x}x{y}" for x, y in blocks)
    (head,) = re.findall(r"^\| block \|.*$", text, re.MULTILINE)
    assert head.count("|") > 3


def test_a_block_that_failed_says_so_in_markdown_and_on_the_map() -> None:
    failed = timed(8, 8, 1.0, outcome="failed", reason="no", timing=None)
    found = of(timed(8, 32, 10.0), failed)
    assert "| 8x8 | ✗ failed | – | – |" in markdown_of(run_report(found))
    assert '<td class="none">failed</td>' in render_html(found)


def test_the_page_says_it_before_the_map() -> None:
    page = render_html(transpose_run())
    assert page.index("Best block 8x32, ") < page.index('class="heat-table"')
