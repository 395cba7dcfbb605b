# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What is concluded from a run: ladders, rates, rooflines, claims, lines and reasons."""

import pytest
from synthetic_runs import (
    DEVICE,
    Gemm,
    Transpose,
    counters,
    gemm_case,
    gemm_run,
    record,
    run,
    sim_run,
    transpose_run,
)

from gpuprof.analysis.answer import answer_of
from gpuprof.analysis.counts import SHARED_WAVEFRONTS, per_step, sector_ratio, value
from gpuprof.analysis.groups import groups
from gpuprof.analysis.ladder import SizeLadder, build_ladder, direction
from gpuprof.analysis.latency import wasted_sectors
from gpuprof.analysis.roofline import build_roofline
from gpuprof.analysis.speed import Speed, limit_of, speed_of
from gpuprof.bounds import with_bounds
from gpuprof.devices.cards import load_card
from gpuprof.records import replace
from gpuprof.results import Counter, Measurement, Run

SMALL, LARGE = Gemm(256, 256, 256), Gemm(4096, 4096, 4096)


def ladder(of: Run, size: str, group: int = 0) -> SizeLadder:
    return build_ladder(of, next(item for item in groups(of)[group].sizes if item.label == size))


def timed(times: dict[str, float], problem=SMALL, **fields: dict[str, object]) -> Run:
    """Kernels in rung order with their times; the fields are those of records, by kernel."""
    kernels = [record(name, "gemm", i, **fields.get(name, {})) for i, name in enumerate(times)]
    return run("gpu", kernels, [gemm_case(name, problem, us) for name, us in times.items()])


def speed(of: Run, case: Measurement) -> Speed:
    found = speed_of(of, case)
    assert found is not None
    return found


class TestGroups:
    def test_sizes_are_ordered_by_work_and_not_by_name(self) -> None:
        sizes = [Gemm(n, n, n) for n in (4096, 128, 1024)]
        (group,) = groups(run("gpu", [], [gemm_case("naive", problem, 10.0) for problem in sizes]))
        assert [size.label for size in group.sizes] == ["128", "1024", "4096"]

    def test_element_types_and_scalars_part_groups_but_layouts_do_not(self) -> None:
        given = ({}, {"layout": "col"}, {"dtype": "f64"}, {"beta": 1.0})
        cases = [gemm_case("naive", Gemm(64, 64, 64, **fields), 10.0) for fields in given]
        cases.append(replace(cases[0], problem=Transpose(64, 64)))
        found = groups(run("gpu", [], cases))
        assert [(group.operation.name, group.dtype, group.variants) for group in found] == [
            ("gemm", "f32", ("row-major", "column-major")),
            ("gemm", "f64", ("row-major",)),
            ("gemm", "f32", ("row-major",)),
            ("transpose", "f32", ()),
        ]


class TestSpeed:
    def test_the_limit_of_a_square_gemm_is_compute_and_of_a_vector_one_memory(self) -> None:
        square, vector = (limit_of(Gemm(m, 4096, 4096), DEVICE) for m in (4096, 1))
        assert square is not None
        assert vector is not None
        assert (square.name, square.gflops) == ("compute", pytest.approx(DEVICE.peak_fp32_gflops))
        assert (vector.name, vector.gbps) == ("bandwidth", pytest.approx(DEVICE.peak_bandwidth_gbps))

    def test_a_kernel_on_tensor_cores_is_held_against_their_peak_and_raises_the_roof(self) -> None:
        hopper, unknown = load_card("h200"), load_card("rtx4090")
        counted = {"tensor_f16_operations": Counter(2 * 4096**3, "operations", "ncu")}
        case = replace(gemm_case("naive", LARGE, 500.0), counters=counted)
        measured = replace(run("gpu", [], [gemm_case("other", LARGE, 31_900.0), case]), devices=(hopper,))
        found = speed(measured, case)
        peak = 2 * 2048 * hopper.sm_count * hopper.sm_clock_mhz / 1e3
        roofline = build_roofline(measured, groups(measured)[0])
        assert roofline is not None
        assert roofline.peak_gflops == pytest.approx(peak)  # raised for the whole ladder
        assert found.limit is not None
        assert (found.limit.name, found.limit.gflops) == ("tensor f16", pytest.approx(peak))
        assert found.pct_of_peak_compute == pytest.approx(100 * found.gflops / peak)
        found = speed(replace(run("gpu", [], [case]), devices=(unknown,)), case)
        assert (found.limit, found.pct_of_peak_compute) == (None, None)

    def test_a_run_in_a_type_of_tensor_cores_is_held_against_that_type_whatever_was_counted(self) -> None:
        hopper = load_card("h200")
        hopper = replace(hopper, measured_rates={"tensor_e4m3_gflops": 1.5e6, "dram_read_gbps": 4000.0})
        as_halves = {"tensor_f16_operations": Counter(2 * 4096**3, "operations", "executor")}
        peak = 2 * 4096 * hopper.sm_count * hopper.sm_clock_mhz / 1e3
        for counted in ({}, as_halves):
            case = replace(gemm_case("naive", LARGE, 500.0), counters=counted)
            case = replace(case, problem=replace(case.problem, dtype="e4m3"))
            measured = replace(run("gpu", [], [case]), devices=(hopper,))
            found = speed(measured, case)
            assert found.limit is not None
            assert (found.limit.name, found.limit.gflops) == ("tensor e4m3", pytest.approx(peak))
            assert found.pct_of_peak_compute == pytest.approx(100 * found.gflops / peak)
            assert found.pct_of_measured_limit == pytest.approx(100 * found.gflops / 1.5e6)
            roofline = build_roofline(measured, groups(measured)[0])
            assert roofline is not None
            assert roofline.peak_gflops == pytest.approx(peak)


class TestLadder:
    def test_rungs_stand_in_order_with_references_last(self) -> None:
        found = ladder(gemm_run(), "4096")
        names = [rung.kernel.id for rung in found.rungs]
        assert names == ["naive", "smem_panel", "smem_tiled", "reg_2x1", "cublas"]
        assert [rung.is_reference for rung in found.rungs] == [False] * 4 + [True]
        assert (found.reference, found.fastest, found.rung("cublas").gain) == ("cublas", "reg_2x1", None)
        assert found.rung("reg_2x1").vs_reference == pytest.approx(2650 / 9910)

    def test_a_failed_rung_keeps_its_place_and_is_stepped_over(self) -> None:
        tiled = ladder(gemm_run(), "4096").rung("smem_tiled")
        assert (tiled.previous, tiled.gain) == ("naive", pytest.approx(31.9 / 22.9))

    def test_a_gain_within_the_noise_is_not_called_one(self) -> None:
        found = ladder(timed({"a": 100.0, "same": 99.6, "faster": 95.0}), "256")
        assert (found.rung("same").gain_is_clear, found.rung("faster").gain_is_clear) == (False, True)

    def test_each_study_is_a_ladder_of_its_own(self) -> None:
        of = timed(dict.fromkeys(("a", "b", "mine"), 10.0), b={"study": "B"}, mine={"study": ""})
        assert [rung.previous for rung in ladder(of, "256").rungs] == [None, None, "b"]

    def test_a_rung_is_compared_with_the_one_that_its_header_names(self) -> None:
        named = {"c": {"study": "B", "after": "a"}, "d": {"after": "not_run"}}
        of = timed({"a": 8.0, "b": 4.0, "c": 2.0, "d": 1.0}, **named)
        found = ladder(of, "256")
        assert (found.rung("c").previous, found.rung("c").gain) == ("a", 4.0)
        assert found.rung("d").previous == "b"
        wrong = replace(of.cases[0], outcome="incorrect")
        assert ladder(replace(of, cases=(wrong, *of.cases[1:])), "256").rung("c").previous is None

    def test_of_several_blocks_the_fastest_correct_one_stands_for_the_kernel(self) -> None:
        rung = ladder(transpose_run(), "2048").rung("naive_col")
        assert (rung.case.block, len(rung.cases)) == ((8, 32, 1), 9)

    def test_without_times_the_headers_parameters_stand_for_a_kernel(self) -> None:
        cases = []
        for tile, micros in ((8, 4.0), (16, 2.0), (32, 1.0)):
            fields = {"kernel": "k", "problem": Transpose(64, 64), "params": {"TILE": tile}}
            counted = counters(l1_passes=132 * 1980 * micros)
            cases.append(with_bounds(replace(sim_run().cases[0], counters=counted, **fields), DEVICE))
        for default, stands, least in ((16, 16, 2), (64, 8, 4)):  # of which the latter did not run
            of = run("sim", [record("k", "transpose", 1, parameters={"TILE": default})], cases)
            built = ladder(of, "64")
            assert built.rung("k").case.params == {"TILE": stands}
            found = answer_of(of, built)
            assert (found.kind, found.shape, found.bound_us) == ("bounded", f"TILE={stands}", least)


class TestClaims:
    def claims(self, old: dict[str, Counter], new: dict[str, Counter], after="a", **moves):
        of = timed({"a": 2.0, "b": 1.0}, b={"after": after, "moves": moves})
        cases = (replace(case, counters=held) for case, held in zip(of.cases, (old, new), strict=True))
        return ladder(replace(of, cases=tuple(cases)), "256").rung("b").claims

    def test_one_that_holds_and_one_that_does_not(self) -> None:
        held, wrong = self.claims(
            counters(shared_load_wavefronts=400, barriers=8),
            counters(shared_load_wavefronts=100, barriers=16),
            shared_load_wavefronts="falls",
            barriers="stays",
        )
        assert (held.says, held.moved, held.contradicted) == ("falls", "falls", False)
        assert held.step is not None
        assert held.step.figures == "400 → 100 (÷4.00)"
        assert (wrong.says, wrong.moved, wrong.contradicted) == ("stays", "rises", True)

    def test_without_a_counter_it_is_neither_held_nor_contradicted(self) -> None:
        unknown, known = self.claims(counters(barriers=400), {}, barriers="falls", grid_blocks="stays")
        assert (unknown.step, unknown.moved, unknown.contradicted) == (None, None, False)
        assert unknown.reason == "Nsight Compute was not asked for"
        assert (known.moved, known.label) == ("stays", "Blocks in the grid")

    def test_it_speaks_of_the_step_from_one_rung_only(self) -> None:
        figures = counters(barriers=400), counters(barriers=800)
        (found,) = self.claims(*figures, after="not_run", barriers="falls")
        assert (found.step, found.contradicted) == (None, False)
        assert "no correct result of not_run" in found.reason
        (found,) = self.claims(*figures, after="", barriers="falls")
        assert found.contradicted

    def test_what_contention_may_explain_contradicts_nothing(self) -> None:
        for source, new, moved in (("ncu", 1100, None), ("ncu", 1300, "rises"), ("sim", 1100, "rises")):
            pair = (counters(source, shared_load_wavefronts=count) for count in (1000, new))
            (found,) = self.claims(*pair, shared_load_wavefronts="stays")
            assert found.moved == moved
            assert found.step is not None

    def test_two_percent_is_no_move(self) -> None:
        pairs = [(100, 102), (100, 103), (100, 98), (100, 97), (0, 0), (0, 1), (1, 0)]
        words = ["stays", "rises", "stays", "falls", "stays", "rises", "falls"]
        assert [direction(*pair) for pair in pairs] == words


def moved(**values: float) -> tuple[str, ...]:
    return tuple(wasted_sectors(replace(transpose_run().cases[0], counters=counters("ncu", **values))))


LOADS = {"global_load_requests": 10, "global_load_sectors": 160, "global_load_efficiency_pct": 25.0}


class TestWhy:
    def test_whole_sectors_would_do_and_fractions_would_not(self) -> None:
        enough = {25.0: 4, 25.1: 4, 24.9: 4, 6.25: 1, 49.9: 8}  # 25.1 % is 4.016 sectors, within 0.5 %
        for pct in (*enough, 25.2, 24.8, 3.0):  # 3 % is 0.48: no number of sectors
            (said,) = moved(**{**LOADS, "global_load_efficiency_pct": pct})
            assert said.startswith("each warp load touches 16 sectors")
            assert (f", {enough.get(pct)} would suffice" in said) == (pct in enough)
            assert ("of their bytes used" in said) == (pct not in enough)


class TestCounters:
    def test_ratios_are_relative_to_the_work(self) -> None:
        case = sim_run().cases[1]
        assert sector_ratio(case) == pytest.approx((16_384 + 2048) * 32 / (3 * 128 * 128 * 4))
        assert per_step(case, *SHARED_WAVEFRONTS) == pytest.approx((131_072 + 4096) / (128**3 / 32))
        assert per_step(sim_run().cases[0], *SHARED_WAVEFRONTS) is None
        more = replace(case, counters={**case.counters, **counters(async_copy_sectors=18_432)})
        assert sector_ratio(more) == pytest.approx(2 * sector_ratio(case))  # type: ignore[operator]

    def test_the_executor_stands_in_for_counters_that_ncu_did_not_take(self) -> None:
        name, ours = "global_load_efficiency_pct", counters(global_load_efficiency_pct=82.5)
        annotated = replace(sim_run().cases[0], counters={}, executor_counters=ours)
        assert value(annotated, name) == 82.5
        theirs = counters("ncu", global_load_efficiency_pct=81.0)
        assert value(replace(annotated, counters=theirs), name) == 81.0
