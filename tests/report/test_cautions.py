# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Each banner in full: who is named, what was measured against which threshold, and who is left alone."""

from dataclasses import replace

import pytest
from synthetic_runs import (
    CLOCKS,
    DEVICE,
    Gemm,
    counted_run,
    counters,
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
CASE = replace(gemm_case("naive", LARGE, 31_900.0), counters=counters("ncu", barriers=1))


def case(name: str = "naive", median_us: float = 31_900.0, **fields: object) -> Measurement:
    """A case that gives no cause for any banner, but for the fields."""
    like = replace(CASE, kernel=name, timing=TimingPair(timing(median_us), None))
    return replace(like, **fields)  # type: ignore[arg-type]


def of(*cases: Measurement, **fields: object) -> Run:
    """A GPU's run of cases."""
    kernels = [record(name, "gemm", 10 * i) for i, name in enumerate({one.kernel: 0 for one in cases}, 1)]
    return run("gpu", kernels, list(cases), **fields)


def only(found: Run) -> Banner:
    """The one banner of a run."""
    (banner,) = banners(found)
    return banner


def test_run_without_any_fault_has_no_banner() -> None:
    assert banners(of(case())) == ()


def test_run_that_stopped_says_how_far_it_came() -> None:
    banner = only(of(case(), case("b"), complete=False))
    assert (banner.code, banner.level) == ("incomplete", "warning")
    assert banner.detail == "2 cases recorded before it stopped; the others are missing here."
    assert only(of(case(), complete=False)).detail.startswith("1 case recorded")


def test_gravest_come_first() -> None:
    stopped = of(case(outcome="incorrect", verification=None), complete=False)
    found = banners(replace(stopped, backend="none"))
    assert [banner.code for banner in found] == ["incorrect", "incomplete", "compiled"]
    blind = replace(DEVICE, peak_fp32_gflops=None)
    levels = [banner.level for banner in banners(of(case(outcome="incorrect"), case("b"), devices=(blind,)))]
    assert levels == ["bad", "note"]


def test_three_cases_are_named_and_the_rest_counted() -> None:
    cases = [case(name, outcome="incorrect", verification=None) for name in "abcde"]
    names = [f"{name} at 4096, block 32x32" for name in "abcde"]
    assert only(of(*cases[:3])).detail == f"{'; '.join(names[:3])}. A wrong kernel gets no speed."
    assert only(of(*cases[:4])).detail.startswith(f"{'; '.join(names[:3])}; and 1 more. ")
    assert only(of(*cases)).detail.startswith(f"{'; '.join(names[:3])}; and 2 more. ")
    assert (only(of(*cases)).title, only(of(cases[0])).title) == (
        "5 cases computed a wrong result",
        "1 case computed a wrong result",
    )


def test_worst_error_is_the_largest_known() -> None:
    wrong = [
        case(name, outcome="incorrect", verification=Verification(1.0, error, bound, 9, 1))
        for name, error, bound in (("a", 0.5, 0.25), ("b", 2.0, 0.125), ("c", None, 0.5))
    ]
    assert ": largest relative error 2.0e+00 (bound 1.2e-01). " in only(of(*wrong)).detail
    assert "largest" not in only(of(wrong[2])).detail


def test_ended_cases_are_told_from_those_that_asked_for_too_much() -> None:
    cases = [
        case("a", outcome="failed"),
        case("b", outcome="timeout"),
        case("c", outcome="failed"),
        case("d", outcome="failed", over_limit=True),
        case("e", outcome="skipped"),
    ]
    bad, note = banners(of(*cases))
    assert bad.title == "3 cases of 5 did not run to the end (2 failed, 1 timeout)"
    assert bad.detail.startswith(
        "a at 4096, block 32x32; b at 4096, block 32x32; c at 4096, block 32x32. All"
    )
    assert (note.code, note.title[:6]) == ("over_limit", "1 case")
    assert note.detail.startswith("d at 4096")


def test_unverified_cases_give_the_first_reason_there_is() -> None:
    blind = case(verification=None)
    assert only(of(blind)).detail == "naive at 4096, block 32x32: no reason was recorded."
    reasoned = case("b", verification=None, verification_reason="asked not to")
    assert only(of(blind, reasoned)).detail == (
        "naive at 4096, block 32x32; b at 4096, block 32x32: asked not to."
    )
    assert only(of(blind, reasoned, case("c"))).title == "2 cases not verified"


def hot(*reasons: str, after: bool = False) -> object:
    state = ClockState(1980, 3201, 90, 600.0, reasons)
    return replace(CLOCKS, after=state) if after else replace(CLOCKS, before=state)


def test_throttling_names_reasons_samples_and_cases() -> None:
    cold = replace(timing(31_900.0, dropped=1_500), throttled=0)
    cases = [
        case("a", clocks=hot("hardware thermal slowdown")),
        case("b", clocks=hot("external power brake", after=True)),
        case("c", timing=TimingPair(cold, None)),
    ]
    banner = only(of(*cases))
    assert (banner.code, banner.level) == ("throttled", "warning")
    assert banner.detail == (
        "external power brake, hardware thermal slowdown, software power cap during 2 cases (allowed: none): "
        "a at 4096, block 32x32; b at 4096, block 32x32; 1,500 cold samples excluded (allowed: 0)."
    )
    kept = case("d", timing=TimingPair(replace(timing(31_900.0), throttled=60), None))
    banner = only(of(kept))
    assert banner.level == "bad"
    assert banner.detail == "no sample of 1 case was taken without throttling: d at 4096, block 32x32."


def test_rate_beyond_the_peak_names_the_furthest() -> None:
    least_us = 2 * 4096**3 / (DEVICE.peak_fp32_gflops * 1e3)  # type: ignore[operator]
    assert "beyond_peak" not in {b.code for b in banners(of(case("at", least_us * 1.0001)))}
    found = [
        b for b in banners(of(case("a", least_us / 1.5), case("b", least_us / 2))) if b.code == "beyond_peak"
    ]
    assert found[0].detail.startswith("b at 4096, block 32x32: 200 % (possible: 100 %).")


def noisy(name: str, width: float | None, **fields: object) -> Measurement:
    return case(name, timing=TimingPair(replace(timing(31_900.0), ci95_rel=width), None), **fields)


def test_noise_names_the_worst_and_leaves_the_cpu_out() -> None:
    banner = only(of(noisy("a", 0.0061), noisy("b", 0.0249), noisy("c", 0.005), noisy("d", 0.001)))
    assert banner.title == "2 cases noisy"
    assert "worst case b at 4096, block 32x32: ±2.5 % (threshold ±0.5 %)." in banner.detail
    wrong = noisy("e", 0.5, outcome="incorrect")
    assert "noise" not in {banner.code for banner in banners(of(wrong))}
    host = replace(reference_case("numpy", LARGE, 9e5), clocks_reason=None)
    on_cpu = run("gpu", [reference_record("numpy", "gemm", "NumPy")], [host])
    assert banners(on_cpu) == ()


@pytest.mark.parametrize(
    ("sample_us", "launches", "taken", "seconds"),
    [
        (141_172.0, 1, 3, "0.9"),  # 6 * 0.141 = 0.847
        (100_000.0, 1, 1, "0.6"),
        (100_001.0, 1, 5, "0.7"),
        (10_000.0, 10, 2, "0.6"),
        (250_000.0, 4, 2, "6"),
    ],
)
def test_too_few_samples_say_how_long_six_take(
    sample_us: float, launches: int, taken: int, seconds: str
) -> None:
    cold = replace(timing(sample_us, count=max(taken, 2)), ci95_rel=None, launches_per_sample=launches)
    cold = replace(cold, rounds_us=((sample_us,) * taken,))
    quick = replace(timing(31_900.0), ci95_rel=None)
    banner = only(of(case("a", timing=TimingPair(cold, None)), case("b", timing=TimingPair(quick, None))))
    assert (banner.code, banner.level) == ("few_samples", "note")
    assert banner.title == "Too few samples for an interval in 2 cases"
    samples = "1 sample of" if taken == 1 else f"{taken} samples of"
    assert f"Longest: a at 4096, block 32x32, {samples} " in banner.detail
    assert banner.fix == f"Measure longer: --seconds {seconds}."


def clocked(name: str, before: int | None, after: int | None) -> Measurement:
    return case(name, clocks=replace(CLOCKS, before=state(before), after=state(after)))


def state(sm_mhz: int | None) -> ClockState:
    return ClockState(sm_mhz, 3201, 40, 300.0, ())


def test_clock_is_low_where_its_higher_reading_is_below_the_threshold() -> None:
    # 95 % of 1980 MHz is 1881.
    fine = [
        clocked("a", 1881, 1000),
        clocked("b", 1000, 1881),
        clocked("c", None, None),
        clocked("d", None, 1900),
    ]
    assert banners(of(*fine)) == ()
    banner = only(of(*fine, clocked("e", 1880, 1700), clocked("f", 1700, 1650), clocked("g", None, 1800)))
    assert (banner.code, banner.level) == ("low_clock", "warning")
    assert banner.title == "The SM clock was low in 3 cases"
    assert banner.detail.startswith(
        "Lowest 1,700 MHz of 1,980 MHz boost, 85.9 % (threshold 95 %): f at 4096, block 32x32. "
    )
    assert "low_clock" not in {b.code for b in banners(of(replace(clocked("e", 9, 9), outcome="incorrect")))}


def test_unknown_clocks_give_the_first_reason_there_is() -> None:
    banner = only(of(case(clocks=None), case("b", clocks=None, clocks_reason="NVML is missing"), case("c")))
    assert (banner.title, banner.level) == ("Clocks unknown for 2 cases", "note")
    assert banner.detail == "NVML is missing. Throttling would go undetected."
    assert only(of(case(clocks=None))).detail.startswith("No reason was recorded. ")


@pytest.mark.parametrize(
    ("peaks", "missing"),
    [
        ({"peak_bandwidth_gbps": None}, "bandwidth"),
        ({"peak_fp32_gflops": None}, "compute rate"),
        ({"peak_bandwidth_gbps": None, "peak_fp32_gflops": None}, "bandwidth"),
    ],
)
def test_unknown_peak_is_said_where_something_was_timed(peaks: dict[str, None], missing: str) -> None:
    blind = of(case(), devices=(replace(DEVICE, **peaks),))
    assert only(blind).title == f"The theoretical peak {missing} of this device is unknown"
    assert [banner.code for banner in banners(replace(blind, backend="sim"))] == ["sim"]


def test_missing_counters_say_why_and_what_stands_in_for_them() -> None:
    plain = case("b", counters={}, counters_reason=None)
    refused = case("c", counters={}, counters_reason="no permission")
    empty = {name: replace(one, value=None) for name, one in counters("ncu", barriers=1).items()}
    without = case("d", counters=empty, counters_reason="no permission")
    banner = only(of(case(), plain))
    assert (banner.title, banner.level) == ("No hardware counters for 1 case of 2", "note")
    assert banner.detail == "They were not asked for. Explanations rest on resources and occupancy."
    banner = only(of(case(), plain, refused, without))
    assert banner.title == "No hardware counters for 3 cases of 4"
    assert banner.detail.startswith("no permission. ")
    executed = replace(plain, executor_counters=counters("sim", barriers=1))
    assert "rest on the SIMT executor's counts." in only(of(executed)).detail
    assert "rest on resources and occupancy." in only(of(executed, refused)).detail
    failed = case("e", counters={}, outcome="skipped")
    assert banners(of(case(), failed)) == ()


def test_sampled_blocks_name_the_smallest_share() -> None:
    like = sim_run().cases[0]
    whole = replace(like, kernel="whole", counters=counters("sim", (16, 16), barriers=1))
    half = replace(like, kernel="half", counters=counters("sim", (8, 16), barriers=1))
    few = replace(like, kernel="few", counters=counters("sim", (9, 1_000_000), barriers=1))
    found = [b for b in banners(replace(sim_run(), cases=(whole, half, few))) if b.code == "sampled"]
    assert found[0].title == "Counts of 2 cases extrapolated from sampled blocks"
    assert found[0].detail == "Fewest: 9 of 1.00 M blocks, few at 128, block 32x32."
    assert not [b for b in banners(replace(sim_run(), cases=(whole,))) if b.code == "sampled"]


def disagreeing(name: str, blocks: tuple[int, int] | None, **hardware: float) -> Measurement:
    ours = counters("sim", blocks, **dict.fromkeys(hardware, 100.0))
    return case(name, counters=counters("ncu", **hardware), executor_counters=ours)


def test_disagreement_names_the_first_and_what_to_do() -> None:
    banner = only(of(disagreeing("a", None, barriers=100.0), disagreeing("b", (16, 16), barriers=150.0)))
    assert (banner.code, banner.level) == ("disagreement", "warning")
    assert banner.title == "Executor and hardware differ without a known reason in 1 case"
    assert banner.detail == ("First: Barriers of b at 4096, block 32x32: executor 100, hardware 150 (+50 %).")
    assert banner.fix == "Trust the hardware's counts, and please report the difference."
    two = of(
        disagreeing("b", None, barriers=50.0, global_load_requests=1.0),
        disagreeing("c", (4, 1_600), barriers=99.0),
    )
    banner = next(b for b in banners(two) if b.code == "disagreement")
    assert banner.title.endswith("in 2 cases")
    assert " The executor ran 4 of 1,600 blocks." in banner.detail
    assert banner.fix.endswith("and run all blocks with --sim-blocks all.")


def test_what_the_executor_counted_none_of_has_no_share() -> None:
    first = counted_run().cases[0]
    wrong = replace(
        first, counters={**first.counters, "barriers": replace(first.counters["barriers"], value=7)}
    )
    (banner,) = [b for b in banners(replace(counted_run(), cases=(wrong,))) if b.code == "disagreement"]
    assert ": executor 0, hardware 7. The executor ran" in banner.detail


def test_case_that_chose_and_one_without_a_launch_are_named_so() -> None:
    chosen = case(chosen="reg_2x1", outcome="incorrect", verification=None)
    assert only(of(chosen)).detail.startswith("naive → reg_2x1 at 4096, block 32x32. ")
    library = replace(reference_case("cublas", LARGE, 2650.0), verification=None)
    found = run("gpu", [reference_record("cublas", "gemm", "cuBLAS")], [library])
    (banner,) = [b for b in banners(found) if b.code == "unverified"]
    assert banner.detail.startswith("cublas at 4096: ")
