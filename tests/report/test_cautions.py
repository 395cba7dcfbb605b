# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Each banner: who is named, what was measured against which threshold, and who is left alone."""

from dataclasses import replace

import pytest
from each import each
from synthetic_runs import (
    CLOCKS,
    DEVICE,
    RUNS,
    Gemm,
    counted_run,
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

from gpuprof.analysis.banner import Banner
from gpuprof.analysis.banners import banners
from gpuprof.results import ClockState, Measurement, Run, TimingPair, Verification

LARGE = Gemm(4096, 4096, 4096)
AT = "at 4096, block 32x32"
CASE = replace(gemm_case("naive", LARGE, 31_900.0), counters=counters("ncu", barriers=1))
NO_SAMPLES = TimingPair(replace(timing(31_900.0), ci95_rel=None), None)


def case(name: str = "naive", median_us: float = 31_900.0, **fields: object) -> Measurement:
    """A case that gives no cause for any banner, but for the fields."""
    like = replace(CASE, kernel=name, timing=TimingPair(timing(median_us), None))
    return replace(like, **fields)  # type: ignore[arg-type]


def of(*cases: Measurement, **fields: object) -> Run:
    """A GPU's run of cases."""
    kernels = [record(name, "gemm", 10 * i) for i, name in enumerate({one.kernel: 0 for one in cases}, 1)]
    return run("gpu", kernels, list(cases), **fields)


def codes(found: Run) -> list[str]:
    return [banner.code for banner in banners(found)]


def only(found: Run, code: str = "") -> Banner:
    """The one banner of a run, or the one with a code."""
    (banner,) = [banner for banner in banners(found) if not code or banner.code == code]
    return banner


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gemm", {"noise", "no_counters", "over_limit"}),
        ("transpose", {"incorrect"}),
        ("referenced", {"noise", "no_counters"}),
        ("sim", {"sim", "sampled"}),
        ("compiled", {"compiled"}),
        ("empty", {"incomplete"}),
        ("all_failed", {"failed", "incorrect"}),
    ],
)
def test_each_situation_raises_its_own(name: str, expected: set[str]) -> None:
    assert set(codes(RUNS[name]())) == expected


def test_a_run_without_any_fault_has_no_banner_and_one_without_cases_has() -> None:
    assert banners(of(case())) == ()
    assert codes(replace(empty_run(), complete=True)) == ["empty"]


def test_run_that_stopped_says_how_far_it_came() -> None:
    banner = only(of(case(), case("b"), complete=False))
    assert (banner.code, banner.level) == ("incomplete", "warning")
    assert "2 cases recorded" in banner.detail
    assert "1 case recorded" in only(of(case(), complete=False)).detail


def test_gravest_come_first() -> None:
    stopped = of(case(outcome="incorrect", verification=None), complete=False)
    assert codes(replace(stopped, backend="none")) == ["incorrect", "incomplete", "compiled"]
    blind = replace(DEVICE, peak_fp32_gflops=None)
    levels = [banner.level for banner in banners(of(case(outcome="incorrect"), case("b"), devices=(blind,)))]
    assert levels == ["bad", "note"]


def test_three_cases_are_named_and_the_rest_counted() -> None:
    cases = [case(name, outcome="incorrect", verification=None) for name in "abcde"]
    for count, more in ((3, ""), (4, "; and 1 more"), (5, "; and 2 more")):
        assert f"a {AT}; b {AT}; c {AT}{more}. " in only(of(*cases[:count])).detail
    assert [only(of(*cases[:count])).title.split()[:2] for count in (1, 5)] == [["1", "case"], ["5", "cases"]]


def test_worst_error_is_the_largest_known() -> None:
    wrong = [
        case(name, outcome="incorrect", verification=Verification(1.0, error, bound, 9, 1))
        for name, error, bound in (("a", 0.5, 0.25), ("b", 2.0, 0.125), ("c", None, 0.5))
    ]
    assert "2.0e+00 (bound 1.2e-01)" in only(of(*wrong)).detail
    assert "largest" not in only(of(wrong[2])).detail


def test_ended_cases_are_told_from_those_that_asked_for_too_much() -> None:
    outcomes = {"a": "failed", "b": "timeout", "c": "failed", "d": "failed", "e": "skipped"}
    cases = [case(name, outcome=outcome, over_limit=name == "d") for name, outcome in outcomes.items()]
    bad, note = banners(of(*cases))
    assert bad.title == "3 cases of 5 did not run to the end (2 failed, 1 timeout)"
    assert f"a {AT}; b {AT}; c {AT}" in bad.detail
    assert (note.code, note.title[:6]) == ("over_limit", "1 case")
    assert note.detail.startswith(f"d {AT}")


def test_unverified_cases_give_the_first_reason_there_is() -> None:
    blind = case(verification=None)
    reasoned = case("b", verification=None, verification_reason="asked not to")
    assert only(of(blind)).detail == f"naive {AT}: no reason was recorded."
    assert only(of(blind, reasoned)).detail == f"naive {AT}; b {AT}: asked not to."
    assert only(of(blind, reasoned, case("c"))).title == "2 cases not verified"


def hot(reason: str, after: bool = False) -> object:
    state = ClockState(1980, 3201, 90, 600.0, (reason,))
    return replace(CLOCKS, after=state) if after else replace(CLOCKS, before=state)


def test_throttling_names_reasons_samples_and_cases_and_a_power_cap_is_none() -> None:
    cold = replace(timing(31_900.0, dropped=1_500), throttled=0)
    cases = [
        case("a", clocks=hot("hardware thermal slowdown")),
        case("b", clocks=hot("external power brake", after=True)),
        case("c", timing=TimingPair(cold, None)),
    ]
    banner = only(of(*cases))
    assert (banner.code, banner.level) == ("throttled", "warning")
    assert "hardware thermal slowdown" in banner.detail
    assert f"2 cases (allowed: none): a {AT}; b {AT}; 1,500 cold samples" in banner.detail
    assert "throttled" not in codes(of(case(clocks=CLOCKS)))
    kept = case("d", timing=TimingPair(replace(timing(31_900.0), throttled=60), None))
    assert only(of(kept)).level == "bad"
    assert f"1 case was taken without throttling: d {AT}" in only(of(kept)).detail


def test_rate_beyond_the_peak_names_the_furthest() -> None:
    least_us = 2 * 4096**3 / (DEVICE.peak_fp32_gflops * 1e3)  # type: ignore[operator]
    assert "beyond_peak" not in codes(of(case("at", least_us * 1.0001)))
    banner = only(of(case("a", least_us / 1.5), case("b", least_us / 2)), "beyond_peak")
    assert banner.level == "bad"
    assert banner.detail.startswith(f"b {AT}: 200 % (possible: 100 %).")


def noisy(name: str, width: float | None, **fields: object) -> Measurement:
    return case(name, timing=TimingPair(replace(timing(31_900.0), ci95_rel=width), None), **fields)


def test_noise_starts_above_the_threshold_names_the_worst_and_leaves_the_cpu_out() -> None:
    banner = only(of(noisy("a", 0.0051), noisy("b", 0.0249), noisy("c", 0.005), noisy("d", 0.001)))
    assert (banner.code, banner.title) == ("noise", "2 cases noisy")
    assert f"b {AT}: ±2.5 % (threshold ±0.5 %)." in banner.detail
    assert "noise" not in codes(of(noisy("e", 0.5, outcome="incorrect")))
    assert "noise" not in codes(of(noisy("f", None)))
    host = replace(reference_case("numpy", LARGE, 9e5), clocks_reason=None)
    assert banners(run("gpu", [reference_record("numpy", "gemm", "NumPy")], [host])) == ()


@each(
    samples=[
        (141_172.0, 1, 3, "0.9"),  # 6 * 0.141 = 0.847
        (100_000.0, 1, 1, "0.6"),
        (100_001.0, 1, 5, "0.7"),
        (10_000.0, 10, 2, "0.6"),
        (250_000.0, 4, 2, "6"),
    ]
)
def test_too_few_samples_say_how_long_six_take(samples: tuple[float, int, int, str]) -> None:
    sample_us, launches, taken, seconds = samples
    cold = replace(timing(sample_us, count=max(taken, 2)), ci95_rel=None, launches_per_sample=launches)
    cold = replace(cold, rounds_us=((sample_us,) * taken,))
    banner = only(of(case("a", timing=TimingPair(cold, None)), case("b", timing=NO_SAMPLES)))
    assert (banner.code, banner.level) == ("few_samples", "note")
    assert banner.title.endswith("in 2 cases")
    assert f"a {AT}, {taken} sample{'' if taken == 1 else 's'} of " in banner.detail
    assert banner.fix == f"Measure longer: --seconds {seconds}."


def clocked(name: str, before: int | None, after: int | None, **fields: object) -> Measurement:
    states = [ClockState(mhz, 3201, 40, 300.0, ()) for mhz in (before, after)]
    return case(name, clocks=replace(CLOCKS, before=states[0], after=states[1]), **fields)


def test_clock_is_low_where_its_higher_reading_is_below_the_threshold() -> None:
    # 95 % of 1980 MHz is 1881.
    readings = {"a": (1881, 1000), "b": (1000, 1881), "c": (None, None), "d": (None, 1900)}
    fine = [clocked(name, *pair) for name, pair in readings.items()]
    assert banners(of(*fine)) == ()
    banner = only(of(*fine, clocked("e", 1880, 1700), clocked("f", 1700, 1650), clocked("g", None, 1800)))
    assert (banner.code, banner.level) == ("low_clock", "warning")
    assert banner.title.endswith("in 3 cases")
    assert f"1,700 MHz of 1,980 MHz boost, 85.9 % (threshold 95 %): f {AT}" in banner.detail
    assert "low_clock" not in codes(of(clocked("e", 9, 9, outcome="incorrect")))


def test_unknown_clocks_give_the_first_reason_there_is() -> None:
    banner = only(of(case(clocks=None), case("b", clocks=None, clocks_reason="NVML is missing"), case("c")))
    assert (banner.title, banner.level) == ("Clocks unknown for 2 cases", "note")
    assert banner.detail.startswith("NVML is missing. ")
    assert only(of(case(clocks=None))).detail.startswith("No reason was recorded. ")


@each(
    peaks=[
        ({"peak_bandwidth_gbps": None}, "bandwidth"),
        ({"peak_fp32_gflops": None}, "compute rate"),
        ({"peak_bandwidth_gbps": None, "peak_fp32_gflops": None}, "bandwidth"),
    ]
)
def test_unknown_peak_is_said_where_something_was_timed(peaks: tuple[dict[str, None], str]) -> None:
    fields, missing = peaks
    blind = of(case(), devices=(replace(DEVICE, **fields),))
    assert f"peak {missing} of" in only(blind, "unknown_peak").title
    assert codes(replace(blind, backend="sim")) == ["sim"]


def test_missing_counters_say_why_and_what_stands_in_for_them() -> None:
    plain = case("b", counters={}, counters_reason=None)
    refused = case("c", counters={}, counters_reason="no permission")
    empty = {name: replace(one, value=None) for name, one in counters("ncu", barriers=1).items()}
    without = case("d", counters=empty, counters_reason="no permission")
    banner = only(of(case(), plain))
    assert (banner.code, banner.level) == ("no_counters", "note")
    assert banner.title.endswith("1 case of 2")
    assert banner.detail == "They were not asked for. Explanations rest on resources and occupancy."
    banner = only(of(case(), plain, refused, without))
    assert banner.title.endswith("3 cases of 4")
    assert banner.detail.startswith("no permission. ")
    executed = replace(plain, executor_counters=counters("sim", barriers=1))
    assert "rest on the SIMT executor's counts." in only(of(executed)).detail
    assert "rest on resources and occupancy." in only(of(executed, refused)).detail
    assert banners(of(case(), case("e", counters={}, outcome="skipped"))) == ()
    # A library's kernels are its own affair.
    assert only(RUNS["referenced"](), "no_counters").title.endswith("4 cases of 8")


def test_sampled_blocks_name_the_smallest_share() -> None:
    blocks = {"whole": (16, 16), "half": (8, 16), "few": (9, 1_000_000)}
    like = sim_run().cases[0]
    cases = [
        replace(like, kernel=name, counters=counters("sim", pair, barriers=1))
        for name, pair in blocks.items()
    ]
    banner = only(replace(sim_run(), cases=tuple(cases)), "sampled")
    assert "2 cases" in banner.title
    assert banner.detail.startswith("Fewest: 9 of 1.00 M blocks, few at 128")
    assert "sampled" not in codes(replace(sim_run(), cases=(cases[0],)))


def disagreeing(name: str, blocks: tuple[int, int] | None, **hardware: float) -> Measurement:
    ours = counters("sim", blocks, **dict.fromkeys(hardware, 100.0))
    return case(name, counters=counters("ncu", **hardware), executor_counters=ours)


def test_disagreement_names_the_first_and_what_to_do() -> None:
    banner = only(of(disagreeing("a", None, barriers=100.0), disagreeing("b", (16, 16), barriers=150.0)))
    assert (banner.code, banner.level) == ("disagreement", "warning")
    assert banner.title.endswith("in 1 case")
    assert f"Barriers of b {AT}: executor 100, hardware 150 (+50 %)." in banner.detail
    assert "report the difference" in banner.fix
    two = (
        disagreeing("b", None, barriers=50.0, global_load_requests=1.0),
        disagreeing("c", (4, 1_600), barriers=99.0),
    )
    banner = only(of(*two), "disagreement")
    assert banner.title.endswith("in 2 cases")
    assert "ran 4 of 1,600 blocks." in banner.detail
    assert "--sim-blocks all" in banner.fix


def test_what_the_executor_counted_none_of_has_no_share() -> None:
    first = counted_run().cases[0]
    other = replace(first.counters["barriers"], value=7)
    wrong = replace(first, counters={**first.counters, "barriers": other})
    banner = only(replace(counted_run(), cases=(wrong,)), "disagreement")
    assert ": executor 0, hardware 7. The executor ran" in banner.detail


def test_case_that_chose_and_one_without_a_launch_are_named_so() -> None:
    chosen = case(chosen="reg_2x1", outcome="incorrect", verification=None)
    assert only(of(chosen)).detail.startswith(f"naive → reg_2x1 {AT}. ")
    library = replace(reference_case("cublas", LARGE, 2650.0), verification=None)
    found = run("gpu", [reference_record("cublas", "gemm", "cuBLAS")], [library])
    assert only(found, "unverified").detail.startswith("cublas at 4096: ")


@each(
    reason=[
        ("No NVIDIA driver is installed here.", "No NVIDIA driver is installed here. Results are exact"),
        ("no CUDA driver was found", "No CUDA driver was found. Results are exact"),
        (None, "Results are exact and counts follow the rules of NVIDIA H200. "),
    ]
)
def test_the_executors_banner_says_each_thing_once(reason: tuple[str | None, str]) -> None:
    detail = only(replace(sim_run(), backend_reason=reason[0]), "sim").detail
    assert detail.startswith(reason[1])
    assert "executor" not in detail
