# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Every figure by hand, why it is missing where it is, and what is concluded at the thresholds."""

import pytest
from each import each
from synthetic_runs import (
    DEVICE,
    Gemm,
    Transpose,
    counters,
    gemm_case,
    record,
    reference_case,
    reference_record,
    run,
    sim_run,
    timing,
)

from gpuprof.analysis.changes import changes
from gpuprof.analysis.counts import BANK_CONFLICTS, GLOBAL_REQUESTS, GLOBAL_SECTORS, SHARED_WAVEFRONTS
from gpuprof.analysis.figures import FIGURES, Subject, headline_rate
from gpuprof.analysis.groups import groups
from gpuprof.analysis.ladder import SizeLadder, build_ladder
from gpuprof.analysis.limiter import limiter_of
from gpuprof.analysis.status import status_of, waves
from gpuprof.bounds import with_bounds
from gpuprof.records import replace
from gpuprof.report.source import LineCounts
from gpuprof.results import (
    Bound,
    Measurement,
    Model,
    Occupancy,
    PublishedFigure,
    Resources,
    Run,
    SourceLine,
    Timing,
    TimingPair,
)

SIZE = Gemm(1000, 1000, 1000)
#: 2e9 FLOPs and 12e6 bytes in 100 µs.
COLD = Timing(100.0, 90.0, 120.0, 0.004, ((99.0, 100.0), (101.0,)), 3, 2, 1)
COUNTED = counters(
    "ncu",
    global_load_requests=100.0,
    global_store_requests=20.0,
    global_load_sectors=700.0,
    global_store_sectors=50.0,
    shared_load_wavefronts=1000.0,
    shared_load_bank_conflicts=300.0,
    shared_store_wavefronts=250.0,
    shared_store_bank_conflicts=100.0,
)
CASE = with_bounds(
    replace(
        gemm_case("b", SIZE, 100.0, (16, 8, 1)),
        timing=TimingPair(COLD, timing(80.0)),
        model=Model(110.0, 90.0, 140.0),
        resources=Resources(40, 1024, 2048, 16),
        occupancy=Occupancy(50.0, "registers", 4, 45.5),
        counters=COUNTED,
    ),
    DEVICE,
)
RATES = {"fma_f32_gflops": 60_000.0, "dram_read_gbps": 4000.0, "dram_copy_gbps": 4100.0}


def measured() -> tuple[Run, SizeLadder]:
    """A ladder of two rungs and a library."""
    kernels = [
        record("a", "gemm", 1),
        record("b", "gemm", 2, published=(PublishedFigure("999", 1.0), PublishedFigure("1000", 0.25))),
        reference_record("cublas", "gemm", "cuBLAS"),
    ]
    library = reference_case("cublas", SIZE, 50.0)
    of = run("gpu", kernels, [gemm_case("a", SIZE, 250.0), CASE, library])
    of = replace(of, devices=(replace(DEVICE, measured_rates=RATES),))
    (group,) = groups(of)
    return of, build_ladder(of, group.sizes[0])


STEPS = 1e9 / 32
VALUES = {
    "median_us": 100.0,
    "p05_us": 90.0,
    "p95_us": 120.0,
    "ci95_pct": 0.4,
    "samples": 3,
    "launches_per_sample": 2,
    "dropped": 3,
    "throttled": 1,
    "warm_us": 80.0,
    "published_us": 250.0,
    "gflops": 20_000.0,
    "gbps": 120.0,
    "pct_of_peak_compute": 100 * 20_000 / 66_908.2,
    "pct_of_peak_bandwidth": 100 * 120 / 4916.7,
    "pct_of_copy": 100 * 120 / 4103.0,
    "pct_of_limit": 100 * 20_000 / 66_908.2,
    "pct_of_measured_limit": 100 * 20_000 / 60_000,
    # Two inputs of 4 MB must come from device memory; the result may stay in L2.
    "model_us": 110.0,
    "model_low_us": 90.0,
    "model_high_us": 140.0,
    "bound_us": 8e6 / 4916.7e3,
    "pct_of_bound": 8e6 / 4916.7e3,
    "gain": 2.5,
    "vs_reference": 0.5,
    "vs_fastest": 1.0,
    "registers_per_thread": 40,
    "static_shared_bytes": 1024,
    "dynamic_shared_bytes": 2048,
    "shared_bytes": 3072,
    "spill_bytes": 16,
    "theoretical_occupancy_pct": 50.0,
    "achieved_occupancy_pct": 45.5,
    "block_threads": 128,
    "grid_blocks": 1024,
    "waves": 1024 / (132 * 4),
    "max_rel_error": 4.2e-7,
    "error_bound": 3.07e-5,
    "sector_ratio": 750 * 32 / 12e6,
    "shared_wavefronts_per_step": 1250 / STEPS,
    "bank_conflicts": 400,
    "bank_conflicts_per_step": 400 / STEPS,
    "global_sectors": 750,
    "global_requests": 120,
    "shared_wavefronts": 1250,
    "address_conflicts": 400,
    "global_load_requests": 100,
}


@each(key=VALUES)
def test_figures_of_a_measured_case(key: str) -> None:
    of, ladder = measured()
    reading = FIGURES[key].read(Subject(of, CASE, replace(ladder.rung("b"), case=CASE)))
    assert reading.value == pytest.approx(VALUES[key])
    assert reading.reason == ""


def test_every_figure_besides_counters_is_held_here() -> None:
    others = {key for key, figure in FIGURES.items() if figure.group != "Counters"}
    assert others - {"occupancy_limiter", "bound_by"} <= VALUES.keys()
    of, _ = measured()
    assert FIGURES["bound_by"].read(Subject(of, CASE)).value == "DRAM"
    assert FIGURES["occupancy_limiter"].read(Subject(of, CASE)).value == "registers"
    assert FIGURES["occupancy_limiter"].value(Subject(of, CASE)) is None


BARE = replace(
    CASE,
    timing=None,
    resources=None,
    occupancy=None,
    verification=None,
    counters={},
    grid=None,
    counters_reason=None,
)
WRONG, UNTIMED = replace(CASE, outcome="incorrect"), replace(CASE, timing=None, timing_reason="not asked for")
FEW = replace(CASE, timing=TimingPair(replace(COLD, ci95_rel=None), None))
MOVED, BROKEN = replace(CASE, problem=Transpose(64, 64)), replace(BARE, reason="it broke")
TOO_LARGE, ASKED = replace(BARE, occupancy_reason="too large"), replace(BARE, counters_reason="not asked for")
assert CASE.verification is not None
NO_NUMBER = replace(CASE, verification=replace(CASE.verification, max_rel_error=None))
DETAILED = replace(NO_NUMBER, verification=replace(NO_NUMBER.verification, detail="C[0, 0] is nan"))
UNREAD = {"barriers": replace(counters("ncu", barriers=1)["barriers"], value=None, reason="too old")}
NO_SPEED = "incorrect: a case gets a speed only when its result is correct"
UNBOUND = "exact counts are missing: the executor did not count it"
NONE = replace(DEVICE, peak_bandwidth_gbps=None, measured_copy_bandwidth_gbps=None)
ON_CPU = reference_case("numpy", SIZE, 9000.0)


@each(
    row=[
        ("median_us ci95_pct gflops gain", WRONG, NO_SPEED),
        ("median_us ci95_pct gflops gain pct_of_bound", UNTIMED, "not asked for"),
        ("ci95_pct", FEW, "too few samples for an interval"),
        ("warm_us", FEW, "not timed warm"),
        ("published_us", replace(CASE, problem=Gemm(8, 8, 8)), "its authors published no time for this size"),
        ("gflops", MOVED, "this problem has no arithmetic"),
        ("pct_of_peak_compute", MOVED, "this problem has no arithmetic, or the device's peak is unknown"),
        ("bound_by bound_us pct_of_bound", with_bounds(replace(CASE, counters={}), DEVICE), UNBOUND),
        ("registers_per_thread", replace(BARE, resources_reason="no cubin"), "no cubin"),
        ("shared_bytes achieved_occupancy_pct grid_blocks error_bound", BROKEN, "it broke"),
        ("spill_bytes", BARE, "no reason was recorded"),
        ("theoretical_occupancy_pct waves", TOO_LARGE, "too large"),
        (
            "achieved_occupancy_pct",
            replace(CASE, occupancy=Occupancy(50.0, "registers", 4, None, "no ncu")),
            "no ncu",
        ),
        ("max_rel_error", replace(BARE, verification_reason="not run"), "not run"),
        ("max_rel_error", NO_NUMBER, "the result holds no number"),
        ("max_rel_error", DETAILED, "C[0, 0] is nan"),
        ("barriers", BARE, "this case has no such counter"),
        ("barriers bank_conflicts", ASKED, "not asked for"),
        ("sector_ratio", BARE, "this kernel has no such counter"),
        ("barriers", replace(BARE, counters=UNREAD), "too old"),
        ("pct_of_copy pct_of_limit warm_us", ON_CPU, "it ran on the CPU"),
    ]
)
def test_missing_figures_say_why(row: tuple[str, Measurement, str]) -> None:
    keys, case, said = row
    of, ladder = measured()
    if case is ON_CPU:
        of = run("gpu", [reference_record("numpy", "gemm", "NumPy")], [case])
    for key in keys.split():
        reading = FIGURES[key].read(Subject(of, case, replace(ladder.rung("b"), case=case)))
        assert (reading.value, reading.reason) == (None, said)


@each(
    row=[
        ("gain", {}, "another case represents the kernel"),
        ("pct_of_peak_bandwidth", {"devices": (NONE,)}, "the device's peak is unknown"),
        ("pct_of_copy", {"devices": (NONE,)}, "no copy bandwidth was measured"),
        ("pct_of_limit", {"devices": (NONE,)}, "the device's theoretical peak is unknown"),
        ("pct_of_measured_limit", {"devices": (NONE,)}, "no such rates were measured on this device"),
        ("median_us", {"backend": "sim"}, "executed without a GPU: not timed"),
        ("gain", {"backend": "none"}, "compiled only: nothing ran"),
    ]
)
def test_a_run_may_lack_a_figure_of_all_its_cases(row: tuple[str, dict[str, object], str]) -> None:
    key, fields, said = row
    of = replace(measured()[0], **fields)  # type: ignore[arg-type]
    reading = FIGURES[key].read(Subject(of, CASE))
    assert (reading.value, reading.reason) == (None, said)


def test_memory_is_the_measured_roof_of_what_moves_more_than_it_computes() -> None:
    moved = gemm_case("b", SIZE, 100.0)
    moved = replace(moved, problem=replace(moved.problem, flops=1000))
    of, _ = measured()
    reading = FIGURES["pct_of_measured_limit"].read(Subject(of, moved))
    assert reading.value == pytest.approx(100 * 120 / 4100)


def test_rate_is_the_operations() -> None:
    of, _ = measured()
    assert headline_rate(of, CASE).key == "gflops"
    assert headline_rate(of, replace(CASE, problem=Transpose(64, 64))).key == "gbps"


def test_waves_fill_the_device_by_what_an_sm_holds() -> None:
    of, _ = measured()
    assert waves(of, replace(CASE, occupancy=Occupancy(0.0, "registers", 0))) is None
    assert waves(of, replace(CASE, grid=(132, 1, 1), occupancy=Occupancy(5.0, "blocks", 1))) == 1.0
    assert waves(of, replace(CASE, grid=(132, 6, 1), occupancy=Occupancy(5.0, "blocks", 4))) == 1.5


def given(**fields: object) -> list[str]:
    """What is said of a kernel that was given something else."""
    of, _ = measured()
    held = {
        "registers_per_thread": 1000,
        "static_shared_bytes": 0,
        "dynamic_shared_bytes": 0,
        "spill_bytes": 0,
    }
    before, after = (replace(CASE, resources=Resources(**{**held, **more})) for more in ({}, fields))  # type: ignore[arg-type]
    return [one.text for one in changes(of, before, after)]


def test_change_is_told_from_five_percent() -> None:
    for new in (1000, 1051, 952):  # log(1.051) is 0.0497
        assert given(registers_per_thread=new) == []
    for new in (1052, 950, 1999, 2000, 0):
        (said,) = given(registers_per_thread=new)
        assert said.startswith(f"registers 1,000 → {new:,}")
        assert ("×" in said) == (new == 2000)


def limiter(median_us: float, **fields: object) -> tuple[str, str] | None:
    of, _ = measured()
    case = replace(
        CASE,
        counters={},
        bounds={},
        resources=None,
        occupancy=None,
        timing=TimingPair(timing(median_us), None),
    )
    found = limiter_of(of, replace(case, **fields))  # type: ignore[arg-type]
    return (found.key, found.evidence) if found else None


@pytest.mark.parametrize(
    ("modelled_us", "blocks", "found"),
    [(None, 500, "l2"), (1.4, 500, "l2"), (1.6, 500, "latency"), (1.6, 100, "grid"), (1.4, 100, "l2")],
)
def test_without_times_a_bound_far_below_the_modelled_time_is_no_limiter(
    modelled_us: float | None, blocks: int, found: str
) -> None:
    of = sim_run()
    model = Model(modelled_us, modelled_us, 2 * modelled_us) if modelled_us else None
    bounds = {"l2": Bound(1.0, "", ""), "dram": Bound(0.5, "", "")}
    case = replace(of.cases[0], bounds=bounds, bound_by="l2", model=model, grid=(blocks, 1, 1))
    limiter = limiter_of(of, case)
    assert limiter is not None
    assert (limiter.key, limiter.share_pct) == (found, None)


def test_without_counts_the_limiter_is_the_roof_from_sixty_percent() -> None:
    compute_us = 2e9 / 66_908.2e3  # at the peak
    assert limiter(compute_us / 0.601) == ("compute", "60.1 % of theoretical peak compute")
    assert limiter(compute_us / 0.599) is None
    # What nobody counted may have multiplied on tensor cores, whose peak of FP64 is that of FP32 here.
    assert limiter(compute_us / 0.601, problem=Gemm(1000, 1000, 1000, dtype="f64")) == limiter(
        compute_us / 0.601
    )
    moved = Transpose(4096, 4096)
    copy_us = 2 * 4096**2 * 4 / 4916.7e3
    assert limiter(copy_us / 0.601, problem=moved) == ("dram", "60.1 % of theoretical peak bandwidth")
    assert limiter(copy_us / 0.599, problem=moved) is None
    assert limiter(compute_us / 0.3, grid=(118, 1, 1)) == ("grid", "118 of 132 SMs have a block")
    assert limiter(compute_us / 0.3, grid=(119, 1, 1)) is None
    assert limiter(compute_us / 0.3, grid=(1, 1, 1), is_reference=True) is None
    assert limiter(1.0, outcome="incorrect") is None


def test_status_of_what_was_only_compiled() -> None:
    of, _ = measured()
    skipped = replace(CASE, outcome="skipped")
    assert status_of(of, skipped).word == "skipped"
    compiled = replace(of, backend="none")
    assert (status_of(compiled, skipped).word, status_of(compiled, skipped).usable) == ("compiled", True)
    assert status_of(compiled, replace(skipped, resources=None)).word == "skipped"
    assert status_of(compiled, replace(skipped, outcome="failed")).word == "failed"


def test_lines_add_up_all_kinds_of_access() -> None:
    lines = (
        SourceLine(3, {"global_load_requests": 2, "async_copy_requests": 3, "global_load_sectors": 10}),
        SourceLine(4, {"global_atomic_sectors": 30, "global_atomic_requests": 5}),
        SourceLine(5, {"shared_load_wavefronts": 7, "async_copy_shared_wavefronts": 2}),
        SourceLine(6, {"shared_load_bank_conflicts": 4, "shared_store_bank_conflicts": 4}),
        SourceLine(7, {"ffma_thread_instructions": 64, "dfma_thread_instructions": 32}),
        SourceLine(8, {"shared_store_bank_conflicts": 8}),
    )
    found = LineCounts(replace(sim_run().cases[0], lines=lines))
    assert [found.share_pct(line, *GLOBAL_SECTORS) for line in (3, 4, 5)] == [25.0, 75.0, None]
    assert [line for line in found.lines if found.is_most(line, *GLOBAL_SECTORS)] == [4]
    assert [line for line in found.lines if found.is_most(line, *BANK_CONFLICTS)] == [6, 8]
    assert (found.of(3, *GLOBAL_REQUESTS), found.of(5, *SHARED_WAVEFRONTS)) == (5, 9)
    assert LineCounts(replace(sim_run().cases[0], lines=None)).lines == {}
