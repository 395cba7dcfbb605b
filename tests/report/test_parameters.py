# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels with several sets of parameters: the panels, the best set, and the sentence that names it."""

from dataclasses import replace

import pytest
from page_reader import PageReader
from synthetic_runs import (
    Gemm,
    Transpose,
    compiled_run,
    counters,
    gemm_case,
    record,
    run,
    sim_run,
    transpose_run,
    tuned_run,
)

from gpuprof.analysis.groups import groups
from gpuprof.analysis.parameters import ParameterSweep, build_parameter_sweeps
from gpuprof.report.charts import parameter_chart
from gpuprof.report.html import render_html
from gpuprof.report.parameters_text import sweep_sentence
from gpuprof.results import Measurement, Run


def sweeps(of: Run) -> tuple[ParameterSweep, ...]:
    (group,) = groups(of)
    return build_parameter_sweeps(of, group)


def sentences(of: Run) -> list[str]:
    return [sweep_sentence(of, sweep) for sweep in sweeps(of)]


def timed(**params: int) -> Measurement:
    """A case whose time in microseconds is the product of its parameters."""
    time = 100.0
    for value in params.values():
        time *= value
    return replace(gemm_case("k", Gemm(512, 512, 512), time), params=params)


def of(cases: list[Measurement], **default: int) -> Run:
    return run("gpu", [record("k", "gemm", 10, parameters=default)], cases)


class TestPanels:
    def test_two_parameters_are_a_matrix_and_more_are_panels(self) -> None:
        first, *_ = sweeps(tuned_run())
        assert (first.kernel, first.size, first.metric) == ("mine", "1024", "median_us")
        assert first.names == ("BM", "BN", "STAGES")
        assert (first.xs, first.ys) == ((64, 128), (32, 64, 128))
        assert [dict(panel.fixed) for panel in first.panels] == [{"STAGES": 1}, {"STAGES": 2}]
        for panel in first.panels:
            for y, row in zip(first.ys, panel.points, strict=True):
                for x, point in zip(first.xs, row, strict=True):
                    assert point is not None
                    assert point.case.params == {"BM": x, "BN": y, "BK": 8, **panel.fixed}

    def test_one_parameter_is_a_row(self) -> None:
        (sweep,) = (item for item in sweeps(tuned_run()) if (item.kernel, item.size) == ("other", "4096"))
        assert (sweep.names, sweep.xs, sweep.ys) == (("UNROLL",), (1, 2, 4, 8), ())
        (panel,) = sweep.panels
        (row,) = panel.points
        assert [point.is_best for point in row if point] == [True, False, False, False]

    def test_a_set_that_did_not_run_is_a_hole_and_a_wrong_one_has_no_value(self) -> None:
        wrong = replace(timed(A=2, B=2), outcome="incorrect", timing=None)
        (sweep,) = sweeps(of([timed(A=1, B=1), timed(A=2, B=1), wrong]))
        (panel,) = sweep.panels
        assert panel.points[1][0] is None
        assert panel.points[1][1] is not None
        assert panel.points[1][1].value is None
        chart = parameter_chart(sweep, panel)
        assert chart["text"] == [["100 µs", "200 µs"], ["", "incorrect"]]
        assert chart["best"] == [[True, False], [False, False]]
        assert (chart["low"], chart["high"]) == (100.0, 200.0)

    def test_of_several_blocks_the_best_stands_for_a_set(self) -> None:
        slow = replace(timed(A=1), block=(64, 4, 1), timing=timed(A=5).timing)
        sweep, blocks = sweeps(of([slow, timed(A=1), timed(A=2)]))
        assert (blocks.names, blocks.is_of_blocks) == (("block.x", "block.y"), True)
        assert [point.value for point in sweep.points] == [100.0, 200.0]
        assert sweep.points[0].case.block == (32, 32, 1)

    @pytest.mark.parametrize(
        "cases",
        [
            [timed(A=1)],
            [replace(timed(A=1), chosen="x"), replace(timed(A=2), chosen="y")],
            [replace(timed(A=1), is_reference=True), replace(timed(A=2), is_reference=True)],
            [timed(A=1), timed(B=2)],
        ],
    )
    def test_what_is_no_sweep(self, cases: list[Measurement]) -> None:
        assert sweeps(of(cases)) == ()

    def test_blocks_that_follow_from_parameters_are_no_sweep_over_blocks(self) -> None:
        cases = [replace(timed(A=x), block=(x * 32, 1, 1)) for x in (1, 2, 4)]
        assert [sweep.names for sweep in sweeps(of(cases))] == [("A",)]
        cases.append(replace(cases[0], block=(512, 1, 1)))
        assert [sweep.names for sweep in sweeps(of(cases))] == [("A",), ("block.x",)]


class TestFigure:
    def test_the_executor_compares_what_differs(self) -> None:
        like = sim_run().cases[0]
        alike = [replace(like, params={"A": value}) for value in (1, 2)]
        assert sweeps(replace(sim_run(), cases=tuple(alike)))[0].metric == "sector_ratio"
        assert like.occupancy is not None
        other = replace(alike[1], occupancy=replace(like.occupancy, theoretical_pct=12.5))
        (sweep,) = sweeps(replace(sim_run(), cases=(alike[0], other)))
        assert sweep.metric == "theoretical_occupancy_pct"
        assert [point.is_best for point in sweep.points] == [True, False]

    def test_counts_differ_from_a_thousandth_on(self) -> None:
        like = sim_run().cases[0]

        def metric(first: float, second: float) -> str:
            cases = (
                replace(like, params={"A": i}, counters=counters("sim", global_load_sectors=sectors))
                for i, sectors in enumerate((first, second))
            )
            return sweeps(replace(sim_run(), cases=tuple(cases)))[0].metric

        assert metric(10_000, 10_000) == metric(10_000, 9_990) == "sector_ratio"
        assert like.occupancy is not None
        other = replace(like, params={"A": 9}, occupancy=replace(like.occupancy, theoretical_pct=12.5))
        for sectors, expected in ((9_991, "theoretical_occupancy_pct"), (9_989, "sector_ratio")):
            cases = (
                replace(like, params={"A": 1}, counters=counters("sim", global_load_sectors=10_000)),
                replace(other, counters=counters("sim", global_load_sectors=sectors)),
            )
            assert sweeps(replace(sim_run(), cases=cases))[0].metric == expected

    def test_best_counts_are_all_that_are_alike_and_the_best_time_is_one(self) -> None:
        like = sim_run().cases[0]
        cases = tuple(
            replace(like, params={"A": i}, counters=counters("sim", global_load_sectors=sectors))
            for i, sectors in enumerate((10_000, 10_009, 10_011, 20_000))
        )
        (sweep,) = sweeps(replace(sim_run(), cases=cases))
        assert [point.is_best for point in sweep.points] == [True, True, False, False]
        near = replace(gemm_case("k", Gemm(512, 512, 512), 100.01), params={"A": 2})
        (sweep,) = sweeps(of([timed(A=1), near]))
        assert [point.is_best for point in sweep.points] == [True, False]

    def test_case_without_a_figure_gives_way_to_one_that_has_it(self) -> None:
        failed = replace(timed(A=1), outcome="failed", timing=None, block=(64, 4, 1))
        for cases in ([failed, timed(A=1), timed(A=2)], [timed(A=1), failed, timed(A=2)]):
            sweep, _ = sweeps(of(cases))
            assert [point.value for point in sweep.points] == [100.0, 200.0]
        tied = replace(timed(A=1), block=(64, 4, 1))
        sweep, _ = sweeps(of([timed(A=1), tied, timed(A=2)]))
        assert sweep.points[0].case.block == (32, 32, 1)

    def test_default_is_the_set_of_which_every_value_is_the_headers(self) -> None:
        (sweep,) = sweeps(of([timed(A=1, B=1), timed(A=1, B=2), timed(A=2, B=2)], A=1, B=2))
        assert [point.is_default for point in sweep.points] == [False, True, False]
        assert sweep.default_point is not None
        (sweep,) = sweeps(of([timed(A=1), timed(A=2)]))
        assert sweep.default_point is None

    def test_without_execution_it_is_the_occupancy(self) -> None:
        like = compiled_run().cases[0]
        cases = tuple(replace(like, params={"A": value}) for value in (1, 2))
        assert sweeps(replace(compiled_run(), cases=cases))[0].metric == "theoretical_occupancy_pct"


FAILED = replace(timed(A=7), outcome="failed", timing=None)
NEAR = replace(gemm_case("k", Gemm(512, 512, 512), 100.4), params={"A": 2})
TIMES = [timed(A=2), timed(A=4), FAILED]


class TestSentence:
    @pytest.mark.parametrize(
        ("cases", "default", "said"),
        [
            (
                [timed(A=2), timed(A=4), timed(A=5)],
                {"A": 4},
                "A=2, 200 µs; 2.00× as fast as the default, A=4.",
            ),
            ([timed(A=1), NEAR], {"A": 2}, "A=1, 100 µs; within the noise of the default, A=2."),
            (TIMES, {"A": 2}, "A=2, 200 µs; that is the default."),
            (TIMES, {"A": 9}, "A=2, 200 µs; the default, A=9, did not run."),
            (TIMES, {}, "A=2, 200 µs; 2.00× as fast as the worst, A=4."),
            (TIMES, {"A": 7}, "A=2, 200 µs; the default, A=7, gave none: failed."),
            # A parameter that is another everywhere is part of the default.
            ([timed(A=2, B=1), timed(A=4, B=1)], {"A": 4, "B": 3}, "the default, A=4 B=3, did not run."),
        ],
    )
    def test_the_best_beside_the_default(
        self, cases: list[Measurement], default: dict[str, int], said: str
    ) -> None:
        (sentence,) = sentences(of(cases, **default))
        assert sentence.startswith(f"Best of {len(cases)} sets of parameters of k: ")
        assert sentence.endswith(said)

    def test_no_result_and_counts_that_are_alike(self) -> None:
        (sentence,) = sentences(of([replace(FAILED, params={"A": x}) for x in (1, 2)]))
        assert sentence == "None of 2 sets of parameters of k gave a figure to compare."
        like = sim_run().cases[0]
        cases = tuple(replace(like, params={"A": value}) for value in (1, 2, 3))
        (sentence,) = sentences(replace(sim_run(), cases=cases))
        assert sentence.startswith(f"All 3 sets of parameters of {like.kernel} have the same traffic: ")


class TestBlocks:
    def block(self, x: int, time_us: float, y: int = 32, **fields: object) -> Measurement:
        case = gemm_case("k", Gemm(512, 512, 512), time_us, (x, y, 1))
        return replace(case, **{"counters": {}, **fields})  # type: ignore[arg-type]

    def test_the_best_against_the_worst_with_what_counts_differ_in(self) -> None:
        counted = [counters("ncu", global_load_sectors=sectors, barriers=7) for sectors in (4000, 1000)]
        slow, fast = self.block(32, 15.0, counters=counted[0]), self.block(8, 10.0, counters=counted[1])
        assert sentences(of([fast, slow, self.block(16, 12.0)])) == [
            "Best of 3 blocks of k: 8x32, 10.0 µs; 1.50× as fast as the worst, 32x32:"
            " global sectors 4,000 → 1,000 (÷4.00)."
        ]
        near = [self.block(8, 10.0), self.block(32, 10.01)]
        assert sentences(of(near))[0].endswith("8x32, 10.0 µs; within the noise of the worst, 32x32.")
        assert sentences(of([near[0], self.block(32, 20.0)]))[0].endswith("the worst, 32x32.")

    def test_blocks_without_a_figure(self) -> None:
        failed = [self.block(x, 1.0, 8, outcome="failed", reason="no", timing=None) for x in (8, 16)]
        assert sentences(of(failed)) == ["None of 2 blocks of k gave a figure to compare."]
        one = of([failed[0], self.block(16, 10.0, 8)])
        assert sentences(one)[0].endswith("16x8, 10.0 µs; no other gave a figure.")
        (sweep,) = sweeps(one)
        assert [(point.value, point.is_best) for point in sweep.points] == [(None, False), (10.0, True)]

    def test_the_page_says_it_before_the_map(self) -> None:
        page = render_html(transpose_run())
        assert page.index("blocks of naive_col: 8x32, ") < page.index('class="heat-table"')


def test_the_page_has_a_chart_and_a_row_for_each() -> None:
    page = PageReader(render_html(tuned_run()))
    tables = [tag["class"] for _, tag in page.tags if tag.get("class") in ("heat-table", "bar-table")]
    assert tables == ["heat-table"] * 2 * 2 + ["bar-table"] * 2  # one for each size, and for each STAGES
    assert "1024, STAGES=2" in page.text
    assert "Best of 12 sets of parameters of mine: BM=64 BN=32 STAGES=1" in page.text


def test_sizes_have_scales_of_their_own() -> None:
    found = sweeps(tuned_run())
    small, large = (parameter_chart(sweep, sweep.panels[0]) for sweep in (found[0], found[1]))
    assert small["high"] < large["low"]
    assert small["low"] == parameter_chart(found[0], found[0].panels[1])["low"]
    assert not small["logarithmic"]


def test_figures_far_apart_are_coloured_by_their_logarithm() -> None:
    (sweep,) = sweeps(of([timed(A=1, B=1), timed(A=1, B=2), timed(A=9, B=1)]))
    assert parameter_chart(sweep, sweep.panels[0])["logarithmic"]


def test_operations_are_compared_apart() -> None:
    moved = replace(timed(A=3), problem=Transpose(64, 64))
    both = of([timed(A=1), timed(A=2), moved])
    assert [len(build_parameter_sweeps(both, group)) for group in groups(both)] == [1, 0]
