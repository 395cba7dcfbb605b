# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`gpuprof.compare` from Python."""

from dataclasses import replace

import pytest
from compared_runs import ladder, runs, with_cases

import gpuprof
from gpuprof.results import Resources
from gpuprof.store import write_run

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


def test_files_and_lists_of_rounds(tmp_path):
    for seed in range(16):
        write_run(ladder(1, seed=seed), tmp_path / f"{seed}.json")
    one = gpuprof.compare(tmp_path / "0.json", str(tmp_path / "1.json"))
    assert one.verdict in ("same", "uncertain")
    several = (
        [tmp_path / f"{seed}.json" for seed in range(8)],
        [gpuprof.load(tmp_path / f"{seed}.json") for seed in range(8, 16)],
    )
    assert gpuprof.compare(*several).cases[0].record.judgement.rounds == (8, 8)
    with pytest.raises(gpuprof.InputError, match="no run to compare"):
        gpuprof.compare([], tmp_path / "0.json")


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
