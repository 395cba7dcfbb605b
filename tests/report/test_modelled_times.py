# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Modelled times where they are shown: beside measured ones, in parts by reason, and by source line."""

import io
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from synthetic_runs import counted_run, gemm_run, sim_run

from gpuprof.analysis.groups import groups
from gpuprof.analysis.limiter import limiter_of
from gpuprof.analysis.models import REASONS, disagreement, stalled
from gpuprof.analysis.roofline import build_roofline
from gpuprof.records import replace
from gpuprof.report.charts import drawings
from gpuprof.report.html import render_html
from gpuprof.report.page import build_page
from gpuprof.report.run_text import show_run
from gpuprof.results import Counter, Model, ModelLine, Run

SHARES = dict(zip(REASONS, (0.4, 0.1, 0.2, 0.1, 0.1, 0.06, 0.04), strict=True))
LINES = (ModelLine(30, 0.3, {"issue": 0.2, "latency": 0.1}), ModelLine(31, 0.5, {"latency": 0.5}))


def modelled(run: Run, factor: float = 1.0, of: str = "") -> Run:
    """A run with models of its kernels: so many times their measured time or bound, one kernel's alone."""

    def with_model(case):
        if case.outcome != "ok" or case.is_reference or (of and case.kernel != of):
            return case
        cold = case.timing.cold if case.timing else None
        us = factor * (
            cold.median_us if cold else case.bounds[case.bound_by].least_us if case.bound_by else 9.0
        )
        return replace(case, model=Model(us, 0.85 * us, 1.3 * us, SHARES, LINES), model_reason=None)

    return replace(run, cases=tuple(map(with_model, run.cases)))


def shown(run: Run, *, table: bool = False) -> str:
    file = io.StringIO()
    show_run(run, file=file, table=table, width=100)
    return " ".join(file.getvalue().split())


@pytest.mark.parametrize(
    ("factor", "said"),
    [
        (1.0, ""),
        (0.8, ""),
        (0.6, "measured 1.67× its modelled time"),
        (1.15, ""),
        (1.5, "measured 0.667× its modelled time"),
    ],
)
def test_a_measured_time_that_the_model_does_not_allow_is_news_in_its_row(factor: float, said: str) -> None:
    run = modelled(gemm_run(), factor, of="reg_2x1")
    found = {case.kernel: disagreement(case) for case in run.cases if case.timing}
    assert found["reg_2x1"].startswith(said)
    assert bool(found["reg_2x1"]) == bool(said)
    assert not any(text for kernel, text in found.items() if kernel != "reg_2x1")
    for text in (shown(run), shown(run, table=True), render_html(run)):
        assert ("its modelled time" in text) == bool(said)
        assert said in text


def test_bars_of_modelled_times_are_made_of_their_reasons() -> None:
    run = modelled(gemm_run(), 0.9)
    view = [view for view in build_page(run).charts.values() if view["kind"] == "bars"][-1]
    place = [choice["label"] for choice in view["choices"]].index("Modelled")
    metric = view["choices"][place]
    assert metric["parts"] == [label for label, _ in REASONS.values()]
    tree = ElementTree.fromstring(f"<all>{drawings(view)[place]}</all>")
    rows = [row for row in tree.iter("li") if list(row.iter("rect"))]
    bars = [bar for bar in metric["bars"] if bar]
    assert len(rows) == len(bars) > 2
    for row, bar in zip(rows, bars, strict=True):
        assert bar["parts"] == pytest.approx([share * bar["value"] for share in SHARES.values()])
        ends = [(float(rect.attrib["x"][:-1]), float(rect.attrib["width"][:-1])) for rect in row.iter("rect")]
        for (start, width), (after, _) in pairwise(ends):
            assert start + width == pytest.approx(after, abs=0.05)
        assert bar["mark"] == pytest.approx(bar["value"] / 0.9)


def test_where_no_card_was_modelled_times_come_first_make_the_roofline_and_the_steps() -> None:
    run = modelled(counted_run(), 1.2)
    cases = [replace(case, timing=None, throughput=None) for case in run.cases if not case.is_reference]
    untimed = replace(run, backend="sim", cases=tuple(cases))
    view = next(view for view in build_page(untimed).charts.values() if view["kind"] == "bars")
    assert [choice["label"] for choice in view["choices"][:2]] == ["Modelled", "Bound"]
    roofline = build_roofline(untimed, groups(untimed)[0])
    assert roofline is not None
    assert {point.by for level in roofline.levels for point in level.points} == {"model"}
    assert "29\xa0ms (24–37\xa0ms) → 26\xa0ms (22–34\xa0ms)" in render_html(untimed)


def test_a_modelled_bar_says_what_limits_it_in_the_words_of_the_table_below() -> None:
    run = replace(modelled(sim_run(), 1.1), backend="sim")
    view = next(view for view in build_page(run).charts.values() if view["kind"] == "bars")
    texts = {
        row["name"]: bar["text"]
        for row, bar in zip(view["rows"], view["choices"][0]["bars"], strict=True)
        if bar
    }
    limited = {
        case.kernel: found.brief for case in run.cases if (found := limiter_of(run, case)) and case.model
    }
    assert len(limited) > 1
    for kernel, words in limited.items():
        assert texts[kernel].endswith(f" · {words}")


def test_reasons_stand_beside_the_stalls_that_nsight_compute_saw() -> None:
    run = modelled(sim_run())
    spent = {"selected": 3.0, "wait": 1.0, "long_scoreboard": 4.0, "lg_throttle": 1.0, "barrier": 1.0}
    counters = {f"stall_{name}": Counter(value, "cycles/instruction", "ncu") for name, value in spent.items()}
    cases = [replace(case, counters=counters) if case.kernel == "naive" else case for case in run.cases]
    naive = next(case for case in cases if case.kernel == "naive" and case.outcome == "ok")
    assert stalled(naive) == {"issue": 0.3, "dependency": 0.1, "latency": 0.5, "barrier": 0.1}
    page = build_page(replace(run, cases=tuple(cases)))
    (section,) = [section for section in page.kernels if section.record.id == "naive"]
    tables = {table.caption: table for table in section.figures if hasattr(table, "caption")}
    reasons = tables["Where the modelled time goes at 128"]
    told = {row.cells[0].text: [cell.text for cell in row.cells[1:3]] for row in reasons.rows}
    assert told["issue"] == ["40.0 %", "30.0 %"]
    assert told["memory latency"] == ["20.0 %", "50.0 %"]
    assert told["memory bandwidth"] == ["10.0 %", "with latency"]
    lines = tables["Source lines that the modelled time goes into at 128"]
    assert [row.cells[0].text for row in lines.rows] == ["Line 31", "Line 30"]
    assert lines.rows[1].cells[2].text == "issue 20 %, memory latency 10 %"
