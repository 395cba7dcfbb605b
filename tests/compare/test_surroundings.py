# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which case belongs to which, what differs besides the kernels, and `gpuprof.compare` from Python."""

import pytest
from compared_runs import gemm_case, ladder, run, runs, with_cases

import gpuprof
from gpuprof.comparison.compared import compare_runs
from gpuprof.comparison.matching import differences, match
from gpuprof.errors import InputError
from gpuprof.records import replace
from gpuprof.results import Clocks, ClockState, Resources
from gpuprof.store import write_run


def on(**fields):
    return replace(ladder(1), devices=(replace(runs.DEVICE, **fields),))


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (on(name="NVIDIA A100"), "device"),
        (on(sm_count=66), "device"),
        (on(compute_capability="8.0"), "device"),
        (on(sm_clock_mhz=1400.0), "boost clock"),
        (on(memory_clock_mhz=2000.0), "memory clock"),
        (replace(ladder(1), backend="sim"), "how"),
        (replace(ladder(1), environment={**ladder(1).environment, "l2_flush": "write"}), "How L2 is flushed"),
        (replace(ladder(1), environment={**ladder(1).environment, "launch_gate": "none"}), None),
    ],
)
def test_what_misleads_is_refused_unless_forced(other, what):
    base = ladder(1)
    if what is None:
        base = replace(base, environment={**base.environment, "launch_gate": "stream wait"})
        what = "How launches are queued"
    with pytest.raises(InputError) as refused:
        compare_runs(base, other)
    assert what in refused.value.what
    assert "--force" in refused.value.fix
    forced = compare_runs(base, other, force=True)
    assert forced.differences[0].what == what
    assert forced.differences[0].misleads
    assert len(forced.cases) == len(base.cases)


def test_times_with_and_without_the_events_own_are_not_compared():
    base, new = timed_by(None), timed_by(2.9)
    assert "times" in {difference.what for difference in differences(base, new) if difference.misleads}
    assert differences(new, timed_by(2.8)) == ()
    assert differences(base, base) == ()


def timed_by(event_pair_us):
    cases = (replace(case, event_floor_us=1.3, event_pair_us=event_pair_us) for case in ladder(1).cases)
    return replace(ladder(1), cases=tuple(cases))


def test_versions_are_told_and_not_refused():
    base = ladder(1)
    other = replace(base, environment={**base.environment, "driver": "595.1", "nvrtc": "13.1"}, seed=3)
    found = compare_runs(base, other).differences
    assert {difference.what for difference in found} == {"seed", "Driver", "Compiler (NVRTC)"}
    assert not any(difference.misleads for difference in found)
    assert "Driver: 580.95.05 → 595.1" in [difference.text for difference in found]


def test_a_tool_that_only_one_run_used_is_no_difference():
    base = ladder(1)
    assert differences(base, replace(base, environment={**base.environment, "ncu": "2025.3"})) == ()


@pytest.mark.parametrize(
    ("mhz", "named", "refused"), [(1960, False, False), (1850, True, False), (1500, True, True)]
)
def test_clocks_while_timing(mhz, named, refused):
    state = ClockState(mhz, 3201, 41, 310.0, ())
    base = ladder(1)
    other = replace(base, cases=tuple(replace(case, clocks=Clocks(state, state)) for case in base.cases))
    found = [item for item in differences(base, other) if item.what.startswith("SM clock")]
    assert bool(found) == named
    assert any(item.misleads for item in found) == refused


def test_throttled_and_incomplete_runs_are_named():
    base = ladder(1)
    hot = replace(base.cases[0].timing.cold, throttled=60)
    cases = (replace(base.cases[0], timing=replace(base.cases[0].timing, cold=hot)), *base.cases[1:])
    found = differences(base, replace(base, cases=cases, complete=False))
    assert [item.text for item in found] == [
        "run: complete → stopped early",
        "cases timed while throttled: 0 → 1",
    ]


SMALL = runs.Gemm(128, 128, 128)


def of(*cases, **fields):
    return replace(run("gpu", [], [], **fields), cases=cases)


def test_cases_of_other_sizes_types_and_scalars_are_not_matched():
    case = gemm_case("k", SMALL, 9.0)
    for problem in (
        replace(SMALL, sizes={"M": 128, "N": 128, "K": 64}),
        replace(SMALL, dtype="f64"),
        replace(SMALL, scalars={"alpha": 2.0, "beta": 0.0}),
        replace(SMALL, options={"layout": "column"}),
    ):
        pairs = match(of(case), of(replace(case, problem=problem)))
        assert [(pair.base is None, pair.new is None) for pair in pairs] == [(True, False), (False, True)]


def test_a_changed_block_or_parameter_is_matched_and_told():
    case = replace(gemm_case("k", SMALL, 9.0), params={"BK": 8})
    other = replace(case, block=(8, 32, 1), params={"BK": 16, "TM": 4})
    (pair,) = match(of(case), of(other))
    assert pair.moved == ("block 32x32 → 8x32", "BK 8 → 16", "TM – → 4")


def test_a_sweep_is_matched_case_by_case():
    blocks = [replace(gemm_case("k", SMALL, 9.0), block=(8, y, 1)) for y in (8, 16, 32)]
    pairs = match(of(*blocks[:2]), of(*blocks[1:]))
    assert [(pair.base, pair.new) for pair in pairs] == [
        (blocks[1], blocks[1]),
        (None, blocks[2]),
        (blocks[0], None),
    ]


def test_in_a_run_on_several_devices_the_device_counts():
    case = gemm_case("k", SMALL, 9.0)
    devices = (runs.DEVICE, replace(runs.DEVICE, name="Another"))
    there = replace(of(case, replace(case, device=1)), devices=devices)
    back = replace(of(replace(case, device=1), case), devices=devices)
    pairs = match(there, back)
    assert [(pair.base.device, pair.new.device) for pair in pairs] == [(1, 1), (0, 0)]


def test_a_kernel_that_chooses_is_matched_whatever_it_chose():
    case = replace(gemm_case("by_size", SMALL, 9.0), chosen="a")
    other = replace(case, chosen="b", block=(64, 1, 1), source_hash="1" * 64)
    (pair,) = match(of(case), of(other))
    assert (pair.base, pair.new) == (case, other)


Run = gpuprof.Run


@pytest.fixture
def comparison():
    new = ladder(seed=2, factors={"naive": 1.1})
    return gpuprof.compare(
        Run(ladder(seed=1)), Run(with_cases(new, reg_2x1={"resources": Resources(99, 0, 0, 0)}))
    )


def test_cases_and_verdicts(comparison):
    assert comparison.verdict == "regressed"
    counts = {verdict: count for verdict, count in comparison.counts.items() if count}
    assert counts == {"regressed": 2, "same": 5, "unmeasured": 1}
    assert len(comparison) == len(comparison.cases) == len(list(comparison)) == 10
    naive = comparison.case("naive", size="4096")
    assert (naive.verdict, naive.basis) == ("regressed", "time")
    assert naive.change == pytest.approx(0.1, abs=0.01)
    assert naive.interval[0] < naive.change < naive.interval[1]
    assert 0.01 < naive.detectable < 0.05
    assert naive.new.median_us > naive.base.median_us
    assert naive.same_source
    assert "slower" in naive.sentence
    assert [case.kernel for case in comparison.find(verdict="regressed")] == ["naive", "naive"]
    with pytest.raises(gpuprof.InputError, match="Did you mean regressed"):
        comparison.find(verdict="regresed")
    assert comparison.case("reg_2x1", size="128").moved["registers_per_thread"] == (38, 99)
    assert repr(comparison).startswith("<new against base: 2 regressed")
    assert "regressed" in repr(naive)


def test_one_case_must_fit(comparison):
    with pytest.raises(gpuprof.InputError, match="2 cases fit kernel='naive'"):
        comparison.case("naive")


def test_gates(comparison):
    slow, spills = comparison.hold("time > 3%", "spill_bytes > 0")
    assert not slow.passed
    assert slow.failing == ("naive 128 32x32", "naive 4096 32x32")
    assert repr(slow).startswith("time > 3%: failed by naive 128 32x32")
    assert spills.passed
    assert spills.outcome == "passed"
    with pytest.raises(gpuprof.InputError, match="Did you mean time"):
        comparison.hold("tiem > 3%")


def test_missing_and_new_cases():
    whole = ladder(1)
    found = gpuprof.compare(
        Run(replace(whole, cases=whole.cases[1:])), Run(replace(whole, cases=whole.cases[:-1]))
    )
    assert found.added == ("naive 128 32x32",)
    assert len(found.missing) == 1


def test_files(tmp_path):
    for seed in range(2):
        write_run(ladder(1, seed=seed), tmp_path / f"{seed}.json")
    one = gpuprof.compare(tmp_path / "0.json", str(tmp_path / "1.json"))
    assert one.verdict in ("same", "uncertain")


def test_without_times_there_is_no_change():
    found = gpuprof.compare(Run(runs.sim_run()), Run(runs.sim_run()))
    assert {case.change for case in found} == {None}
    assert {case.interval for case in found} == {case.detectable for case in found} == {None}


def test_documents(comparison):
    assert comparison.to_json()["comparisons"][0]["verdict"] == "regressed"
    assert comparison.to_markdown().startswith("### new against base")
    assert comparison.to_html().startswith("<!DOCTYPE html>")


def test_rounds_of_profile_are_checked():
    with pytest.raises(gpuprof.InputError, match="rounds is 0"):
        gpuprof.profile("transpose", sizes=64, kernels="naive_row", device="sim:h200", rounds=0)
    run = gpuprof.profile("transpose", sizes=64, kernels="naive_row", device="sim:h200", rounds=3)
    assert gpuprof.compare(run, run).verdict == "same"
