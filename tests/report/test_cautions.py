# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Each banner: who is named, what was measured against which threshold, and who is left alone."""

import pytest
from synthetic_runs import (
    CLOCKS,
    DEVICE,
    RUNS,
    Gemm,
    counters,
    empty_run,
    gemm_case,
    record,
    reference_case,
    reference_record,
    run,
    sim_run,
    timing,
)

from gpuprof.analysis.status import Banner
from gpuprof.comparison.cautions import cautions
from gpuprof.records import replace
from gpuprof.results import ClockState, Measurement, Run, TimingPair, Verification

LARGE = Gemm(4096, 4096, 4096)
AT = "4096 32x32"
CASE = replace(gemm_case("naive", LARGE, 31_900.0), counters=counters("ncu", barriers=1))


def case(name: str = "naive", **fields: object) -> Measurement:
    """A case that gives no cause for any banner, but for the fields."""
    return replace(CASE, kernel=name, **fields)  # type: ignore[arg-type]


def cold(name: str = "a", median_us: float = 31_900.0, **fields: object) -> Measurement:
    """The same with another timing."""
    return case(name, timing=TimingPair(replace(timing(median_us), **fields), None))


def wrong(name: str, error: float | None = None, bound: float = 0.25) -> Measurement:
    held = None if error is None else Verification(1.0, error, bound, 9, 1)
    return case(name, outcome="incorrect", verification=held)


def clocked(name: str, before: int | None, after: int | None, why: tuple[str, ...] = ()) -> Measurement:
    states = [ClockState(mhz, 3201, 40, 300.0, why) for mhz in (before, after)]
    return case(name, clocks=replace(CLOCKS, before=states[0], after=states[1]))


def twice(name: str, blocks: tuple[int, int] | None = None, **hardware: float) -> Measurement:
    """A case that the executor counted 100 of everything in, beside the hardware."""
    ours = counters("sim", blocks, **dict.fromkeys(hardware, 100.0))
    return case(name, counters=counters("ncu", **hardware), executor_counters=ours)


def asking(name: str, share: float) -> Measurement:
    """A case whose loads and stores ask for this share of the fewest bytes that its problem can move."""
    sectors = share * LARGE.min_bytes / 32
    held = counters("ncu", global_load_sectors=sectors - 100, global_store_sectors=100)
    return case(name, counters=held)


def of(*cases: Measurement, **fields: object) -> Run:
    """A GPU's run of cases."""
    kernels = [record(name, "gemm", 10 * i) for i, name in enumerate({one.kernel: 0 for one in cases}, 1)]
    return run("gpu", kernels, list(cases), **fields)


def sampled(**blocks: tuple[int, int]) -> Run:
    like = sim_run().cases[0]
    cases = (
        replace(like, kernel=name, counters=counters("sim", pair, barriers=1))
        for name, pair in blocks.items()
    )
    return replace(sim_run(), cases=tuple(cases))


UNCOUNTED = case("b", counters={}, counters_reason=None)
REFUSED = case("c", counters={}, counters_reason="no permission")
HOT, BRAKE = ("hardware thermal slowdown",), ("external power brake",)
PEAK_US = 2 * 4096**3 / (DEVICE.peak_fp32_gflops * 1e3)  # type: ignore[operator]
LIBRARY = run(
    "gpu",
    [reference_record("cublas", "gemm", "cuBLAS")],
    [replace(reference_case("cublas", LARGE, 2650.0), verification=None)],
)


@pytest.mark.parametrize(
    ("found", "code", "level", "told"),
    [
        (of(case(), case("b"), complete=False), "incomplete", "warning", ("2 cases recorded",)),
        (replace(empty_run(), complete=True), "empty", "warning", ()),
        # Three cases are named, and the rest counted; the worst known error stands with its bound.
        (of(*map(wrong, "abcde")), "incorrect", "bad", ("5 cases", f"c {AT} and 2 more. ")),
        (of(wrong("a", 0.5), wrong("b", 2.0, 0.125)), "incorrect", "bad", ("2.0e+00 (bound 1.2e-01)",)),
        (
            of(case("a", outcome="failed"), case("b", outcome="timeout"), case("e", outcome="skipped")),
            "failed",
            "bad",
            ("2 cases of 3 did not run to the end (1 failed, 1 timeout)", f"a {AT} and b {AT}."),
        ),
        (of(case("d", outcome="failed", over_limit=True)), "over_limit", "note", ("1 case", f"d {AT}.")),
        (
            of(case("a", verification=None), case("b", verification=None, verification_reason="asked")),
            "unverified",
            "warning",
            ("2 cases not verified", "asked."),
        ),
        (LIBRARY, "unverified", "warning", ("cublas 4096: ",)),
        (
            of(clocked("a", 1980, 1980, HOT), clocked("b", 1980, 1980, BRAKE), cold("c", dropped=1_500)),
            "throttled",
            "warning",
            (*HOT, *BRAKE, f"2 cases (allowed: none): a {AT} and b {AT}; 1,500 cold samples"),
        ),
        (of(cold("d", throttled=60)), "throttled", "bad", (f"1 case was taken without throttling: d {AT}",)),
        (
            of(cold("a", PEAK_US / 1.5), cold("b", PEAK_US / 2)),
            "beyond_peak",
            "bad",
            (f"b {AT}: 200 % (possible: 100 %).", "or uncounted tensor cores did it"),
        ),
        (
            of(asking("a", 0.75), asking("b", 0.5), asking("c", 1.0)),
            "too_much_work",
            "warning",
            (f"b {AT}: loads and stores ask for 0.500× of the bytes", "[work]"),
        ),
        (
            of(cold("a", ci95_rel=0.0051), cold("b", ci95_rel=0.0249), cold("c", ci95_rel=0.005)),
            "noise",
            "warning",
            ("2 cases noisy", f"b {AT}: ±2.5 % (threshold ±0.5 %)."),
        ),
        # 95 % of 1980 MHz is 1881.
        (
            of(clocked("a", 1880, 1700), clocked("b", 1700, 1650), clocked("c", None, 1800)),
            "low_clock",
            "warning",
            ("in 3 cases", f"1,700 MHz of 1,980 MHz boost, 85.9 % (threshold 95 %): b {AT}"),
        ),
        (
            of(case(clocks=None), case("b", clocks=None, clocks_reason="NVML is missing"), case("c")),
            "unknown_clock",
            "note",
            ("Clocks unknown for 2 cases", "NVML is missing. "),
        ),
        (of(case(), UNCOUNTED), "no_counters", "note", ("1 case of 2", "not asked for", "occupancy.")),
        (of(UNCOUNTED, REFUSED), "no_counters", "note", ("2 cases of 2", "no permission. ")),
        # A library's kernels are its own affair.
        (RUNS["referenced"](), "no_counters", "note", ("4 cases of 8",)),
        (
            of(replace(UNCOUNTED, executor_counters=counters("sim", barriers=1))),
            "no_counters",
            "note",
            ("rest on the SIMT executor's counts.",),
        ),
        (
            sampled(whole=(16, 16), half=(8, 16), few=(9, 1_000_000)),
            "sampled",
            "note",
            ("2 cases", "Fewest: 9 of 1.00 M blocks, few 128 32x32"),
        ),
        (
            of(twice("a", barriers=100.0), twice("b", (16, 16), barriers=150.0)),
            "disagreement",
            "warning",
            (
                "in 1 case",
                f"Barriers of b {AT}: executor 100, hardware 150 (+50 %).",
                "report the difference",
            ),
        ),
        (
            of(twice("b", barriers=50.0, global_load_requests=1.0), twice("c", (4, 1_600), barriers=99.0)),
            "disagreement",
            "warning",
            ("in 2 cases", "ran 4 of 1,600 blocks.", "--sim-blocks all"),
        ),
        (
            of(case(log='h.h(2): warning: #warning directive: "my h.h is not found, and empty"')),
            "absent_header",
            "warning",
            ("my h.h not found, and taken as empty", "-I DIR"),
        ),
        (
            replace(sim_run(), backend_reason="no driver"),
            "sim",
            "warning",
            ("No driver. Results are exact", "without --device sim"),
        ),
    ],
)
def test_who_is_named_and_why(found: Run, code: str, level: str, told: tuple[str, ...]) -> None:
    (banner,) = [banner for banner in cautions(found) if banner.code == code]
    assert banner.level == level
    assert not [part for part in told if part not in _text(banner)]


def _text(banner: Banner) -> str:
    return f"{banner.title} {banner.detail} {banner.fix}"


HOST = replace(reference_case("numpy", LARGE, 9e5), clocks_reason=None)


@pytest.mark.parametrize(
    "found",
    [
        of(case(clocks=CLOCKS)),  # a power cap is no throttling
        of(cold(median_us=PEAK_US * 1.0001)),
        of(clocked("a", 1881, 1000), clocked("b", 1000, 1881), clocked("c", None, None)),
        of(case(), case("e", counters={}, outcome="skipped")),
        of(twice("a", barriers=100.0)),
        of(asking("a", 0.995), case("b", counters=counters("ncu", global_load_sectors=1))),
        run("gpu", [reference_record("numpy", "gemm", "NumPy")], [HOST]),  # the CPU's noise and clock
    ],
)
def test_who_is_left_alone(found: Run) -> None:
    assert cautions(found) == ()


def test_gravest_come_first() -> None:
    stopped = replace(of(wrong("a"), complete=False), backend="none")
    assert [banner.code for banner in cautions(stopped)] == ["incorrect", "incomplete", "compiled"]
