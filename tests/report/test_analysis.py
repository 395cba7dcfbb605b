# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What is concluded from a run: ladders, rates, rooflines, sweeps, lines, verdicts and banners."""

import dataclasses
from dataclasses import replace

import pytest
from synthetic_runs import (
    CLOCKS,
    DEVICE,
    Gemm,
    Transpose,
    all_failed_run,
    compiled_run,
    counted_run,
    counters,
    empty_run,
    gemm_case,
    gemm_run,
    many_run,
    record,
    referenced_run,
    run,
    sim_run,
    timing,
    transpose_run,
)

from gpuprof.analysis.agreement import agreements
from gpuprof.analysis.answer import answer_of
from gpuprof.analysis.banners import banners
from gpuprof.analysis.changes import changes
from gpuprof.analysis.claims import Claim, direction
from gpuprof.analysis.counts import SHARED_WAVEFRONTS, per_step, sector_ratio, value
from gpuprof.analysis.groups import groups
from gpuprof.analysis.ladder import SizeLadder, build_ladder
from gpuprof.analysis.limiter import limiter_of
from gpuprof.analysis.lines import line_figures
from gpuprof.analysis.roofline import build_roofline
from gpuprof.analysis.scaling import build_scaling
from gpuprof.analysis.speed import limit_of, speed_of
from gpuprof.analysis.why import clues_of, reasons, speed_of_light, stalls
from gpuprof.bounds import with_bounds
from gpuprof.devices.cards import load_card
from gpuprof.operation import ArrayDeclaration, ScalarDeclaration
from gpuprof.results import ClockState, Counter, Measurement, Run, TimingPair


def ladder(of: Run, size: str) -> SizeLadder:
    (group,) = groups(of)
    return build_ladder(of, next(item for item in group.sizes if item.label == size))


def codes(of: Run) -> set[str]:
    return {banner.code for banner in banners(of)}


class TestGroups:
    def test_the_heading_names_the_types_of_the_arrays_where_none_is_the_runs(self) -> None:
        of = gemm_run()
        (group,) = groups(of)
        assert group.title == "GEMM, float32, row-major"
        half, index = ArrayDeclaration(("n",), dtype="f16"), ArrayDeclaration(("n",), "out", "u32")
        fixed = replace(group.operation, arrays={"x": half, "y": half, "i": index}, scalars={})
        assert replace(group, operation=fixed).title == "GEMM, float16 and uint32, row-major"
        scaled = replace(fixed, scalars={"a": ScalarDeclaration("real")})
        assert replace(group, operation=scaled).title == "GEMM, float32, row-major"


class TestStanding:
    def test_without_times_the_headers_parameters_stand_for_a_kernel(self) -> None:
        problem = Transpose(64, 64)
        cases = [
            with_bounds(
                replace(
                    sim_run().cases[0],
                    kernel="k",
                    problem=problem,
                    params={"TILE": tile},
                    counters=counters(l1_passes=132 * 1980 * micros),
                ),
                DEVICE,
            )
            for tile, micros in ((8, 4.0), (16, 2.0), (32, 1.0))
        ]
        for default, stands, least in ((16, 16, 2), (64, 8, 4)):  # of which the latter did not run
            of = run("sim", [record("k", "transpose", 1, parameters={"TILE": default})], cases)
            built = ladder(of, "64")
            assert built.rung("k").case.params == {"TILE": stands}
            found = answer_of(of, built)
            assert (found.kind, found.shape, found.bound_us) == ("bounded", f"TILE={stands}", least)


class TestSpeed:
    def test_rates_follow_from_the_cold_median(self) -> None:
        case = gemm_case("naive", Gemm(4096, 4096, 4096), 31_900.0)
        speed = speed_of(run("gpu", [], [case]), case)
        assert speed is not None
        assert speed.gflops == pytest.approx(2 * 4096**3 / 31_900e-6 / 1e9)
        assert speed.pct_of_peak_compute == pytest.approx(100 * speed.gflops / DEVICE.peak_fp32_gflops)
        assert speed.pct_of_copy_bandwidth == pytest.approx(100 * speed.gbps / 4103.0)

    @pytest.mark.parametrize("backend", ["sim", "none"])
    def test_without_a_gpu_a_time_in_the_file_is_not_believed(self, backend: str) -> None:
        case = gemm_case("naive", Gemm(128, 128, 128), 17.0)
        assert speed_of(replace(gemm_run(), backend=backend), case) is None

    def test_a_wrong_kernel_gets_no_speed(self) -> None:
        case = replace(gemm_case("naive", Gemm(128, 128, 128), 17.0), outcome="incorrect")
        assert speed_of(gemm_run(), case) is None

    def test_the_limit_of_a_square_gemm_is_compute_and_of_a_vector_one_memory(self) -> None:
        square = limit_of(Gemm(4096, 4096, 4096), DEVICE)
        vector = limit_of(Gemm(1, 4096, 4096), DEVICE)
        assert square is not None
        assert square.name == "compute"
        assert square.gflops == pytest.approx(DEVICE.peak_fp32_gflops)
        assert vector is not None
        assert vector.name == "bandwidth"
        assert vector.gbps == pytest.approx(DEVICE.peak_bandwidth_gbps)

    def test_a_kernel_on_tensor_cores_is_held_against_their_peak(self) -> None:
        hopper = load_card("h200")
        counted = {"tensor_f16_operations": Counter(2 * 4096**3, "operations", "ncu")}
        case = replace(gemm_case("naive", Gemm(4096, 4096, 4096), 500.0), counters=counted)
        speed = speed_of(replace(run("gpu", [], [case]), devices=(hopper,)), case)
        assert speed is not None
        assert speed.limit is not None
        assert speed.limit.name == "tensor f16"
        peak = 2 * 2048 * hopper.sm_count * hopper.sm_clock_mhz / 1e3
        assert speed.limit.gflops == pytest.approx(peak)
        assert speed.pct_of_peak_compute == pytest.approx(100 * speed.gflops / peak)
        unknown = load_card("rtx4090")
        speed = speed_of(replace(run("gpu", [], [case]), devices=(unknown,)), case)
        assert speed is not None
        assert (speed.limit, speed.pct_of_peak_compute) == (None, None)

    def test_an_unknown_peak_leaves_the_rate_and_drops_the_share(self) -> None:
        blind = replace(
            gemm_run(), devices=(replace(DEVICE, peak_bandwidth_gbps=None, peak_fp32_gflops=None),)
        )
        speed = speed_of(blind, blind.cases[0])
        assert speed is not None
        assert speed.gflops is not None
        assert (speed.pct_of_peak_compute, speed.pct_of_limit, speed.limit) == (None, None, None)


class TestLadder:
    def test_rungs_stand_in_order_with_references_last(self) -> None:
        rungs = ladder(gemm_run(), "4096").rungs
        assert [rung.kernel.id for rung in rungs] == [
            "naive",
            "smem_panel",
            "smem_tiled",
            "reg_2x1",
            "cublas",
        ]
        assert [rung.is_reference for rung in rungs] == [False] * 4 + [True]

    def test_a_failed_rung_keeps_its_place_and_is_stepped_over(self) -> None:
        tiled = ladder(gemm_run(), "4096").rung("smem_tiled")
        assert tiled.previous == "naive"
        assert tiled.gain == pytest.approx(31.9 / 22.9)

    def test_a_gain_within_the_noise_is_not_called_one(self) -> None:
        problem = Gemm(2048, 2048, 2048)
        kernels = [record(name, "gemm", index) for index, name in enumerate(["a", "same", "faster"])]
        cases = [
            gemm_case(kernel.id, problem, time)
            for kernel, time in zip(kernels, [100, 99.6, 95.0], strict=True)
        ]
        found = ladder(run("gpu", kernels, cases), "2048")
        assert not found.rung("same").gain_is_clear
        assert found.rung("faster").gain_is_clear

    def test_a_reference_is_no_rung(self) -> None:
        found = ladder(gemm_run(), "4096")
        assert found.reference == "cublas"
        assert found.fastest == "reg_2x1"
        assert found.rung("cublas").gain is None
        assert found.rung("reg_2x1").vs_reference == pytest.approx(2650 / 9910)

    def test_each_study_is_a_ladder_of_its_own(self) -> None:
        problem = Gemm(256, 256, 256)
        kernels = [
            record("a", "gemm", 1),
            record("b", "gemm", 2, study="B"),
            record("mine", "gemm", 3, study=""),
        ]
        found = ladder(
            run("gpu", kernels, [gemm_case(kernel.id, problem, 10.0) for kernel in kernels]), "256"
        )
        assert found.rung("b").previous is None
        assert found.rung("mine").previous == "b"

    def test_a_rung_is_compared_with_the_one_that_its_header_names(self) -> None:
        problem = Gemm(256, 256, 256)
        kernels = [
            record("a", "gemm", 1),
            record("b", "gemm", 2),
            record("c", "gemm", 3, study="B", after="a"),
            record("d", "gemm", 4, after="not_run"),
        ]
        cases = [
            gemm_case(kernel.id, problem, time) for kernel, time in zip(kernels, (8, 4, 2, 1), strict=True)
        ]
        found = ladder(run("gpu", kernels, cases), "256")
        assert (found.rung("c").previous, found.rung("c").gain) == ("a", 4.0)
        assert found.rung("d").previous == "b"
        wrong = replace(cases[0], outcome="incorrect")
        assert ladder(run("gpu", kernels, [wrong, *cases[1:]]), "256").rung("c").previous is None

    def test_of_several_blocks_the_fastest_correct_one_stands_for_the_kernel(self) -> None:
        rung = ladder(transpose_run(), "2048").rung("naive_col")
        assert rung.case.block == (8, 32, 1)
        assert len(rung.cases) == 9

    def test_copies_are_neither_fastest_nor_compared_with_transposes(self) -> None:
        found = ladder(transpose_run(), "2048")
        assert found.fastest == "naive_col"
        assert found.rung("copy_row").speed.median_us < found.rung("naive_col").speed.median_us  # type: ignore[union-attr]
        assert found.rung("naive_row").previous is None

    def test_a_kernel_without_a_record_still_shows(self) -> None:
        bare = replace(gemm_run(), kernels=())
        assert {rung.kernel.id for rung in ladder(bare, "128").rungs} == {case.kernel for case in bare.cases}


class TestClaims:
    def claims(
        self, old: dict[str, Counter], new: dict[str, Counter], after: str = "a", **moves: str
    ) -> tuple[Claim, ...]:
        problem = Gemm(256, 256, 256)
        kernels = [record("a", "gemm", 1), record("b", "gemm", 2, after=after, moves=moves)]
        cases = [
            replace(gemm_case("a", problem, 2.0), counters=old),
            replace(gemm_case("b", problem, 1.0), counters=new),
        ]
        return ladder(run("gpu", kernels, cases), "256").rung("b").claims

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
        assert found.reason == "no correct result of not_run to compare with"
        (found,) = self.claims(*figures, after="", barriers="falls")
        assert found.contradicted

    def test_what_contention_may_explain_contradicts_nothing(self) -> None:
        for source, new, moved in (("ncu", 1100, None), ("ncu", 1300, "rises"), ("sim", 1100, "rises")):
            (found,) = self.claims(
                counters(source, shared_load_wavefronts=1000),
                counters(source, shared_load_wavefronts=new),
                shared_load_wavefronts="stays",
            )
            assert found.moved == moved
            assert found.step is not None

    @pytest.mark.parametrize(
        ("old", "new", "word"),
        [
            (100, 102, "stays"),
            (100, 103, "rises"),
            (100, 98, "stays"),
            (100, 97, "falls"),
            (0, 0, "stays"),
            (0, 1, "rises"),
            (1, 0, "falls"),
        ],
    )
    def test_two_percent_is_no_move(self, old: float, new: float, word: str) -> None:
        assert direction(old, new) == word


class TestReferences:
    def rungs(self, size: str) -> SizeLadder:
        return next(
            build_ladder(referenced_run(), item)
            for group in groups(referenced_run())
            for item in group.sizes
            if item.label == size
        )

    def test_the_vendor_is_the_base_and_the_cpu_is_not(self) -> None:
        found = self.rungs("4096")
        assert found.reference == "cublas"
        assert found.rung("reg_2x1").vs_reference == pytest.approx(2650 / 9920)
        only_cpu = replace(
            referenced_run(), cases=tuple(c for c in referenced_run().cases if c.kernel != "cublas")
        )
        (gemm, _) = groups(only_cpu)
        assert build_ladder(only_cpu, gemm.sizes[0]).reference is None

    def test_a_copy_is_no_base_for_transposes(self) -> None:
        found = self.rungs("2048")
        assert found.reference == "cublas_geam"
        assert found.rung("device_copy").vs_reference is None
        assert found.fastest == "naive_col"

    def test_the_cpu_has_a_rate_and_no_share_of_the_gpus_peaks(self) -> None:
        case = referenced_run().cases[3]
        speed = speed_of(referenced_run(), case)
        assert speed is not None
        assert speed.gflops == pytest.approx(2 * 4096**3 / 181_000 / 1e3)
        assert (speed.pct_of_limit, speed.limit, speed.pct_of_peak_compute) == (None, None, None)
        assert limiter_of(referenced_run(), case) is None

    def test_the_cpu_does_not_stand_under_the_gpus_roofs(self) -> None:
        (gemm, _) = groups(referenced_run())
        roofline = build_roofline(referenced_run(), gemm)
        assert roofline is not None
        (level,) = roofline.levels
        assert [point.kernel for point in level.points] == ["naive", "reg_2x1", "cublas"]

    def test_a_host_and_a_library_raise_no_banner_of_the_gpus(self) -> None:
        (noise,) = [item for item in banners(referenced_run()) if item.code == "noise"]
        assert noise.title == "3 cases noisy"
        (none,) = [item for item in banners(referenced_run()) if item.code == "no_counters"]
        assert none.title == "No hardware counters for 4 cases of 8"
        assert "unknown_clock" not in codes(referenced_run())


class TestWhy:
    def test_what_the_hardware_counted_of_study_a(self) -> None:
        said = {case.kernel: reasons(case) for case in counted_run().cases}
        assert said == {
            "naive": (
                "2 global load requests for each warp-wide FMA",
                "warps stall 52.5 % of their cycles on global memory (long scoreboard)",
            ),
            "smem_panel": (),
            "smem_tiled": (
                "2.07 shared-memory passes for each warp-wide FMA",
                "L1 and shared memory at 80.4 % of peak",
                "warps stall 27.6 % of their cycles on the shared-memory queue (mio throttle)",
            ),
            "reg_2x1": (
                "1.07 shared-memory passes for each warp-wide FMA",
                "L1 and shared memory at 94.5 % of peak",
                "warps stall 27.1 % of their cycles on shared memory (short scoreboard)",
            ),
        }

    def test_a_step_is_called_an_fma_where_the_work_consists_of_them(self) -> None:
        problem = Gemm(64, 64, 64)
        steps = problem.flops / 64
        for kind, fmas, step in (
            ("ffma", problem.flops / 2, "each warp-wide FMA"),
            ("dfma", problem.flops / 2, "each warp-wide FMA"),
            ("ffma", problem.flops / 20, "every 64 operations"),
        ):
            counted = counters(**{f"{kind}_thread_instructions": fmas, "global_load_requests": 2 * steps})
            case = replace(sim_run().cases[0], problem=problem, counters=counted)
            assert reasons(case)[0] == f"2 global load requests for {step}"

    def moved(self, **values: float) -> tuple[str, ...]:
        return reasons(replace(transpose_run().cases[0], counters=counters("ncu", **values)))

    def test_sectors_that_would_do(self) -> None:
        said = self.moved(
            global_store_requests=100, global_store_sectors=3200, global_store_efficiency_pct=12.5
        )
        assert said == ("each warp store touches 32 sectors, 4 would suffice",)

    def test_a_mean_over_different_loads_has_no_ideal(self) -> None:
        said = self.moved(
            global_load_requests=131_072, global_load_sectors=1_114_112, global_load_efficiency_pct=13.235
        )
        assert said == ("each warp load touches 8.5 sectors, 13.2 % of their bytes used",)

    @pytest.mark.parametrize(
        ("sectors", "pct", "said"),
        [
            (1_600, 25.0, "16 sectors, 4 would suffice"),
            (1_600, 25.1, "16 sectors, 4 would suffice"),  # 4.016, within 0.5 %
            (1_600, 24.9, "16 sectors, 4 would suffice"),
            (1_600, 25.2, "16 sectors, 25.2 % of their bytes used"),  # 4.032
            (1_600, 24.8, "16 sectors, 24.8 % of their bytes used"),
            (1_600, 6.25, "16 sectors, 1 would suffice"),
            (1_600, 3.0, "16 sectors, 3.00 % of their bytes used"),  # 0.48: no number of sectors
            (1_600, 49.9, "16 sectors, 8 would suffice"),
        ],
    )
    def test_whole_sectors_would_do_and_fractions_would_not(
        self, sectors: int, pct: float, said: str
    ) -> None:
        found = self.moved(
            global_load_requests=100, global_load_sectors=sectors, global_load_efficiency_pct=pct
        )
        assert found == (f"each warp load touches {said}",)

    def test_efficiency_of_half_is_no_waste(self) -> None:
        half = {"global_load_requests": 100, "global_load_sectors": 1_600, "global_load_efficiency_pct": 50.0}
        assert self.moved(**half) == ()

    def test_efficiency_without_requests_is_said_alone_and_last(self) -> None:
        stores = {
            "global_store_requests": 10,
            "global_store_sectors": 320,
            "global_store_efficiency_pct": 12.5,
        }
        assert self.moved(global_load_efficiency_pct=12.5, **stores) == (
            "each warp store touches 32 sectors, 4 would suffice",
            "load efficiency only 12.5 %",
        )

    def test_waste_of_less_than_a_tenth_of_all_sectors_is_left_out(self) -> None:
        stores = {"global_store_requests": 100, "global_store_efficiency_pct": 100.0}
        loads = {"global_load_requests": 10, "global_load_sectors": 160, "global_load_efficiency_pct": 25.0}
        assert self.moved(**loads, **stores, global_store_sectors=1_040) == (  # 120 unused of 1200
            "each warp load touches 16 sectors, 4 would suffice",
        )
        assert self.moved(**loads, **stores, global_store_sectors=1_041) == ()

    def test_the_larger_waste_goes_first_and_a_small_one_is_left_out(self) -> None:
        loads = {"global_load_requests": 10, "global_load_sectors": 160, "global_load_efficiency_pct": 25.0}
        stores = {
            "global_store_requests": 10,
            "global_store_sectors": 320,
            "global_store_efficiency_pct": 12.5,
        }
        assert [text[:15] for text in self.moved(**loads, **stores)] == ["each warp store", "each warp load "]
        few = {**loads, "global_load_requests": 1, "global_load_sectors": 16}
        assert len(self.moved(**few, **stores)) == 1

    def test_bank_conflicts_in_wavefronts(self) -> None:
        conflicted = counters(
            shared_load_wavefronts=3200, shared_load_bank_conflicts=3100, shared_load_requests=100
        )
        case = replace(transpose_run().cases[0], counters=conflicted)
        assert reasons(case) == ("shared loads take 32 wavefronts each, 1 would suffice",)
        hardware = {"shared_load_wavefronts": 3200, "shared_load_bank_conflicts": 3100}
        assert self.moved(**hardware) == ("shared loads take 32 wavefronts where 1 would suffice",)

    def test_arbitration_is_no_bank_conflict(self) -> None:
        assert self.moved(shared_store_wavefronts=1125, shared_store_bank_conflicts=125) == ()
        tiled = counted_run().cases[2]
        changed = changes(run("gpu", [], []), counted_run().cases[0], tiled)
        assert not any(change.label == "bank conflicts" for change in changed)

    def test_stalls_are_shares_of_one_whole_in_order(self) -> None:
        shares = [share.pct for share in stalls(counted_run().cases[0])]
        assert sum(shares) == pytest.approx(100)
        assert shares == sorted(shares, reverse=True)

    def test_each_part_stands_against_its_own_peak(self) -> None:
        labels = [share.label for share in speed_of_light(counted_run().cases[3])]
        assert labels == ["L1", "Memory", "SM", "L2", "DRAM"]

    def test_without_counters_nothing_is_said(self) -> None:
        assert reasons(gemm_run().cases[0]) == ()


class TestAgreement:
    def test_the_real_run_agrees(self) -> None:
        found = agreements(counted_run())
        assert [item.case.kernel for item in found] == ["naive", "smem_tiled", "reg_2x1"]
        assert [len(item.of_kind("agrees")) for item in found] == [7, 10, 10]
        assert [len(item.of_kind("arbitration")) for item in found] == [0, 4, 4]
        assert all(not item.of_kind("unexplained") for item in found)
        assert found[0].sampled == (6, 16_384)

    def test_an_unexplained_difference_raises_a_banner(self) -> None:
        assert "disagreement" not in codes(counted_run())
        case = counted_run().cases[0]
        wrong = replace(
            case, counters={**case.counters, "barriers": replace(case.counters["barriers"], value=7)}
        )
        (banner,) = [
            item for item in banners(replace(counted_run(), cases=(wrong,))) if item.code == "disagreement"
        ]
        assert "Barriers of naive at 4096, block 32x32: executor 0, hardware 7" in banner.detail
        assert "--sim-blocks all" in banner.fix

    def test_counters_of_one_side_only_are_no_comparison(self) -> None:
        assert agreements(sim_run()) == ()
        assert agreements(transpose_run()) == ()


class TestExplanations:
    def test_counters_explain_before_resources(self) -> None:
        found = ladder(sim_run(), "128").rung("smem_tiled").changes
        assert [change.text for change in found] == [
            "global sectors 330 k → 18,432 (÷17.9)",
            "global requests 132 k → 4,608 (÷28.6)",
            "load efficiency 82.5 % → 100 %",
        ]
        assert not any("shared memory" in change.label for change in found)

    def test_resources_explain_without_counters(self) -> None:
        found = ladder(compiled_run(), "128").rung("smem_tiled").changes
        assert [change.text for change in found] == ["shared memory 0 B → 8 KiB"]

    def test_what_did_not_move_is_not_mentioned(self) -> None:
        case = sim_run().cases[0]
        assert changes(run("gpu", [], []), case, case) == ()

    def test_without_counts_the_peak_that_is_near_or_a_small_grid_limits(self) -> None:
        of = gemm_run()
        found = {(case.kernel, case.problem.label): limiter_of(of, case) for case in of.cases}
        keys = {name: limiter.key if limiter else None for name, limiter in found.items()}
        assert keys["naive", "128"] == "grid"
        assert keys["naive", "4096"] is None
        assert keys["cublas", "4096"] == "compute"

    def test_a_copy_near_peak_is_memory_bound(self) -> None:
        of = transpose_run()
        fast = replace(of.cases[0], timing=TimingPair(timing(8.0), None))
        limiter = limiter_of(of, fast)
        assert limiter is not None
        assert limiter.text == "DRAM-bound: 85.3 % of theoretical peak bandwidth"

    def test_poor_coalescing_is_a_clue(self) -> None:
        assert clues_of(transpose_run().cases[2]) == ("store efficiency only 25.0 %",)


class TestCounters:
    def test_traffic_is_relative_to_the_fewest_bytes(self) -> None:
        case = sim_run().cases[1]
        assert sector_ratio(case) == pytest.approx((16_384 + 2048) * 32 / (3 * 128 * 128 * 4))

    def test_wavefronts_per_warp_step(self) -> None:
        assert per_step(sim_run().cases[1], *SHARED_WAVEFRONTS) == pytest.approx(
            (131_072 + 4096) / (128**3 / 32)
        )

    def test_what_was_not_counted_is_none_and_not_zero(self) -> None:
        case = sim_run().cases[0]
        assert per_step(case, *SHARED_WAVEFRONTS) is None

    def test_async_copies_are_global_traffic_too(self) -> None:
        case = sim_run().cases[1]
        more = replace(case, counters={**case.counters, **counters(async_copy_sectors=18_432)})
        assert sector_ratio(more) == pytest.approx(2 * sector_ratio(case))  # type: ignore[operator]

    def test_the_executor_stands_in_for_counters_that_ncu_did_not_take(self) -> None:
        annotated = replace(
            sim_run().cases[0], counters={}, executor_counters=counters(global_load_efficiency_pct=82.5)
        )
        assert value(annotated, "global_load_efficiency_pct") == 82.5
        both = replace(annotated, counters=counters("ncu", global_load_efficiency_pct=81.0))
        assert value(both, "global_load_efficiency_pct") == 81.0

    def test_half_a_sum_is_no_sum(self) -> None:
        held = counters(global_load_sectors=10.0, global_store_sectors=5.0)
        unmeasured = replace(held["global_store_sectors"], value=None, reason="needs a newer ncu")
        case = replace(sim_run().cases[0], counters={**held, "global_store_sectors": unmeasured})
        assert sector_ratio(case) is None

    def test_lines_share_the_traffic_and_mark_the_worst(self) -> None:
        figures = line_figures(sim_run().cases[0])
        assert figures[18].traffic_pct == pytest.approx(100 * 327_680 / 329_728)
        assert figures[18].sectors_per_request == pytest.approx(2.5)
        assert (figures[18].most_traffic, figures[20].most_traffic) == (True, False)
        assert not figures[18].most_conflicts


class TestCharts:
    def test_roofline_uses_the_ideal_intensity(self) -> None:
        (group,) = groups(gemm_run())
        roofline = build_roofline(gemm_run(), group)
        assert roofline is not None
        ideal = roofline.levels[-1]
        assert ideal.key == "ideal"
        assert [roof.measured for roof in ideal.memory_roofs] == [False, True]
        point = next(point for point in ideal.points if point.size == "4096")
        assert point.flop_per_byte == pytest.approx(2 * 4096**3 / (3 * 4096**2 * 4))
        assert not any(point.kernel == "smem_panel" and point.size == "4096" for point in ideal.points)

    def test_a_transpose_has_no_roofline(self) -> None:
        (group,) = groups(transpose_run())
        assert build_roofline(transpose_run(), group) is None

    def test_scaling_orders_points_by_work(self) -> None:
        (group,) = groups(gemm_run())
        series = {
            item.kernel: [point.size for point in item.points] for item in build_scaling(gemm_run(), group)
        }
        assert series["naive"] == ["128", "4096"]
        assert series["smem_panel"] == ["128"]

    def test_of_many_kernels_the_best_of_each_study_is_drawn(self) -> None:
        (group,) = groups(many_run())
        series = build_scaling(many_run(), group)
        assert len(series) == 45
        assert [item.kernel[-2:] for item in series if item.is_shown] == ["00", "01", "02", "03", "04"]

    def test_few_kernels_are_all_drawn(self) -> None:
        (group,) = groups(gemm_run())
        assert all(item.is_shown for item in build_scaling(gemm_run(), group))

    def test_one_size_does_not_scale(self) -> None:
        (group,) = groups(transpose_run())
        assert build_scaling(transpose_run(), group) == ()


class TestBanners:
    @pytest.mark.parametrize(
        ("of", "expected"),
        [
            (gemm_run(), {"noise", "no_counters", "over_limit"}),
            (transpose_run(), {"incorrect"}),
            (sim_run(), {"sim", "sampled"}),
            (compiled_run(), {"compiled"}),
            (empty_run(), {"incomplete"}),
            (replace(empty_run(), complete=True), {"empty"}),
            (all_failed_run(), {"failed", "incorrect"}),
        ],
    )
    def test_each_situation_raises_its_own(self, of: Run, expected: set[str]) -> None:
        assert codes(of) == expected

    def one(self, **fields: object) -> Run:
        case = gemm_case("naive", Gemm(4096, 4096, 4096), 31_900.0)
        return run("gpu", [record("naive", "gemm", 1)], [replace(case, **fields)])  # type: ignore[arg-type]

    def test_a_power_cap_is_no_throttling(self) -> None:
        assert "throttled" not in codes(self.one(clocks=CLOCKS))

    def test_a_thermal_slowdown_is(self) -> None:
        hot = replace(CLOCKS, after=ClockState(1500, 3201, 90, 600.0, ("hardware thermal slowdown",)))
        (banner,) = [item for item in banners(self.one(clocks=hot)) if item.code == "throttled"]
        assert "hardware thermal slowdown" in banner.detail

    def test_dropped_samples_are_said(self) -> None:
        assert "throttled" in codes(self.one(timing=TimingPair(timing(31_900.0, dropped=7), None)))

    def test_case_without_one_undisturbed_sample_is_said_though_none_was_dropped(self):
        cold = dataclasses.replace(timing(31_900.0), throttled=60)
        run = self.one(clocks=CLOCKS, timing=TimingPair(cold, None))
        (banner,) = [item for item in banners(run) if item.code == "throttled"]
        assert banner.level == "bad"
        assert "no sample of 1 case was taken without throttling: naive at 4096" in banner.detail

    def test_a_low_clock_names_measured_and_threshold(self) -> None:
        slow = replace(CLOCKS, before=ClockState(1200, 1, 1, 1.0, ()), after=ClockState(1320, 1, 1, 1.0, ()))
        (banner,) = [item for item in banners(self.one(clocks=slow)) if item.code == "low_clock"]
        assert "1,320 MHz of 1,980 MHz" in banner.detail
        assert "66.7 % (threshold 95 %)" in banner.detail

    @pytest.mark.parametrize(("share", "noisy"), [(0.005, False), (0.0051, True), (None, False)])
    def test_noise_starts_above_the_threshold(self, share: float | None, noisy: bool) -> None:
        cold = replace(timing(31_900.0), ci95_rel=share)
        assert ("noise" in codes(self.one(timing=TimingPair(cold, None)))) is noisy

    def test_too_few_samples_are_no_noise(self) -> None:
        cold = replace(timing(141_172.0, count=3), ci95_rel=None)
        of = self.one(timing=TimingPair(cold, None))
        (banner,) = [item for item in banners(of) if item.code == "few_samples"]
        assert banner.level == "note"
        assert "3 samples of 141 ms each; an interval needs 6" in banner.detail
        assert banner.fix == "Measure longer: --seconds 0.9."

    @pytest.mark.parametrize(
        ("reason", "start"),
        [
            (
                "No NVIDIA driver is installed here.",
                "No NVIDIA driver is installed here. Results are exact",
            ),
            ("no CUDA driver was found", "No CUDA driver was found. Results are exact"),
            (None, "Results are exact and counts follow the rules of NVIDIA H200. Kernels are compared"),
        ],
    )
    def test_the_executors_banner_says_each_thing_once(self, reason: str | None, start: str) -> None:
        (banner,) = [
            item for item in banners(replace(sim_run(), backend_reason=reason)) if item.code == "sim"
        ]
        assert banner.detail.startswith(start)
        assert banner.detail.count("executor") == 0

    def test_a_rate_above_the_peak_is_an_error(self) -> None:
        (banner,) = [
            item
            for item in banners(self.one(timing=TimingPair(timing(1000.0), None)))
            if item.code == "beyond_peak"
        ]
        assert banner.level == "bad"

    def test_unverified_results_are_said(self) -> None:
        assert "unverified" in codes(self.one(verification=None, verification_reason="asked not to"))

    def test_unknown_clocks_are_said(self) -> None:
        assert "unknown_clock" in codes(self.one(clocks=None, clocks_reason="NVML cannot be used"))


def test_sizes_are_ordered_by_work_and_not_by_name() -> None:
    sizes = [Gemm(n, n, n) for n in (4096, 128, 1024)]
    (group,) = groups(run("gpu", [], [gemm_case("naive", problem, 10.0) for problem in sizes]))
    assert [size.label for size in group.sizes] == ["128", "1024", "4096"]


def test_element_types_and_scalars_part_groups_but_layouts_do_not() -> None:
    problems = [
        Gemm(64, 64, 64),
        Gemm(64, 64, 64, layout="col"),
        Gemm(64, 64, 64, dtype="f64"),
        Gemm(64, 64, 64, beta=1.0),
    ]
    cases: list[Measurement] = [gemm_case("naive", problem, 10.0) for problem in problems]
    cases.append(replace(cases[0], problem=Transpose(64, 64)))
    found = groups(run("gpu", [], cases))
    assert [(group.operation.name, group.dtype, group.variants, group.title) for group in found] == [
        ("gemm", "f32", ("row-major", "column-major"), "GEMM, float32, row-major and column-major"),
        ("gemm", "f64", ("row-major",), "GEMM, float64, row-major"),
        ("gemm", "f32", ("row-major",), "GEMM, float32, row-major"),
        ("transpose", "f32", (), "Transpose, float32"),
    ]
