# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The answer of a ladder: data that every renderer picks from, and never more than is known."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from synthetic_runs import (
    Gemm,
    all_failed_run,
    chosen_run,
    compiled_run,
    counted_run,
    empty_run,
    gemm_case,
    gemm_run,
    record,
    referenced_run,
    run,
    sim_run,
    tuned_run,
)

from gpuprof.analysis.answer import Answer, answer_of
from gpuprof.analysis.groups import groups
from gpuprof.analysis.ladder import build_ladder
from gpuprof.api import measured_run as api
from gpuprof.errors import InputError, ToolError
from gpuprof.reading import read_run
from gpuprof.records import replace
from gpuprof.report.markdown import markdown_of
from gpuprof.report.run_text import answer_document
from gpuprof.results import Measurement, Model, Run


def answers(held: Run) -> list[Answer]:
    return [answer_of(held, build_ladder(held, size)) for group in groups(held) for size in group.sizes]


def of_times(**times_us: float) -> Answer:
    problem = Gemm(1024, 1024, 1024)
    kernels = [record(name, "gemm", 10 * index) for index, name in enumerate(times_us, 1)]
    (found,) = answers(run("gpu", kernels, [gemm_case(name, problem, us) for name, us in times_us.items()]))
    return found


def test_a_library_is_none_of_the_kernels_that_ran_correctly() -> None:
    held = gemm_run()
    wrong = {"outcome": "failed", "timing": None}
    cases = [case if case.kernel == "cublas" else replace(case, **wrong) for case in held.cases]
    (found, *_) = answers(replace(held, cases=tuple(cases)))
    assert found.lead.startswith("no answer: 0 of ")


def test_a_ceiling_alone_is_no_answer() -> None:
    held = read_run(Path(__file__).parents[2] / "samples" / "reduce-h200.json")
    cases = [case for case in held.cases if case.kernel == "read_all"]
    assert {answer.lead for answer in answers(replace(held, cases=tuple(cases)))} == {
        "no answer: only a ceiling ran, which bounds what other kernels can reach"
    }
    document = answer_document(held, named={"read_all"})
    assert "read\\_all (ceiling)" in markdown_of(document)


@pytest.mark.parametrize(
    ("held", "size", "kind", "name", "facts"),
    [
        (gemm_run(), "4096", "timed", "reg_2x1", {"reference": 0.267, "limiter": None, "peak": 20.7}),
        (counted_run(), "4096", "timed", "reg_2x1", {"limiter": "l1", "share": 93.0}),
        (chosen_run(), "4096", "timed", "float4_4x4", {"limiter": None, "peak": 46.5}),
        (tuned_run(), "4096", "timed", "mine BM=64 BN=32 STAGES=1", {"limiter": "compute", "share": 79.0}),
        (sim_run(), "128", "bounded", "naive", {"limiter": "fma", "share": None, "bound": 0.0627}),
        (compiled_run(), "128", "none", "", {}),
        (all_failed_run(), "512x1024x256", "none", "", {}),
    ],
)
def test_what_is_known_of_the_fastest(held: Run, size: str, kind: str, name: str, facts: dict) -> None:
    (found,) = [answer for answer in answers(held) if answer.size == size]
    assert (found.kind, f"{found.ran} {found.shape}".strip()) == (kind, name)
    limiter = found.limiter
    known = {
        "reference": found.reference and found.reference.factor,
        "limiter": limiter and limiter.key,
        "share": limiter and limiter.share_pct,
        "peak": float(found.peak.split()[0]) if found.peak else None,
        "bound": found.bound_us,
    }
    for key, value in facts.items():
        assert known[key] == (pytest.approx(value, rel=0.01) if isinstance(value, float) else value), key
    assert (found.time_us is None) == (kind != "timed")


@pytest.mark.parametrize("make", [gemm_run, chosen_run, tuned_run, sim_run])
def test_a_program_gets_the_case_that_the_answer_names(make) -> None:
    held = make()
    program = api.MeasuredRun(held)
    for found, said in zip(answers(held), program.answer.splitlines(), strict=True):
        assert f" {found.size}: {found.ran}" in said
        assert found.short_time in said
        case = program.best(found.size)
        assert (case.kernel, case.size, case.ok) == (found.kernel, found.size, True)
        known = case.figures.get("median_us") if found.time_us else case.bound_us
        assert known == pytest.approx(found.time_us or found.bound_us)


def test_a_program_is_told_why_there_is_no_best_case() -> None:
    with pytest.raises(api.NotMeasured, match="No kernel is the best: no answer"):
        api.MeasuredRun(all_failed_run()).best()
    with pytest.raises(InputError, match="several answers: the run has 128, 4096"):
        api.MeasuredRun(gemm_run()).best()
    with pytest.raises(InputError, match="no answer for size 7: the run has 128, 4096"):
        api.MeasuredRun(gemm_run()).best(7)
    with pytest.raises(InputError, match="no answer for device nothing"):
        api.MeasuredRun(sim_run()).best(device="nothing")
    with pytest.raises(InputError, match="no answer: the run has no case"):
        api.MeasuredRun(empty_run()).best()


def test_a_data_frame_is_made_of_the_rows_where_pandas_is(monkeypatch) -> None:
    program = api.MeasuredRun(gemm_run())
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ToolError, match="needs pandas"):
        program.to_pandas()
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=lambda rows: rows))
    assert program.to_pandas() == program.to_dicts()


def test_without_a_time_a_bound_is_said_to_be_one() -> None:
    said = api.MeasuredRun(sim_run()).answer
    assert said.startswith("Lowest bound 128: naive, at least 62.7 ns, FMA-bound")


def test_it_is_held_against_the_library_and_the_simplest_rung() -> None:
    found = next(answer for answer in answers(referenced_run()) if answer.size == "4096")
    assert found.reference is not None
    assert found.simplest is not None
    assert (found.reference.name, found.simplest.name) == ("cuBLAS", "naive")
    assert found.reference.text == "0.27× cuBLAS"
    assert found.simplest.factor > 1


@pytest.mark.parametrize(("floor_us", "said"), [(2.2, "launch overhead 2.2 of 3.9 µs"), (0.5, None)])
def test_a_short_time_is_explained_by_its_launch(floor_us: float, said: str | None) -> None:
    case = replace(gemm_case("tiny", Gemm(64, 64, 64), 3.9), event_floor_us=floor_us)
    (found,) = answers(run("gpu", [record("tiny", "gemm", 10)], [case]))
    assert (found.overhead and found.overhead.text) == said


@pytest.mark.parametrize(
    ("times", "near"),
    [
        ((1000.0, 1100.0), ""),
        ((1000.0, 1001.0, 1100.0), "within the noise of b"),
        ((1000.0, 1000.5, 1001.0, 1001.5, 1002.0), "within the noise of b, c, d and 1 more"),
    ],
)
def test_who_is_within_the_noise_is_said_to_be(times: tuple[float, ...], near: str) -> None:
    found = of_times(**dict(zip("abcde", times, strict=False)))
    assert (found.kernel, found.near()) == ("a", near)


def test_what_a_kernel_chose_is_no_rival_of_it() -> None:
    problem = Gemm(1024, 1024, 1024)
    kernels = [record("plain", "gemm", 10), record("chooser", "gemm", 20)]
    cases = [gemm_case("plain", problem, 1001.0), gemm_case("chooser", problem, 1000.0)]
    (found,) = answers(run("gpu", kernels, [cases[0], replace(cases[1], chosen="plain")]))
    assert (found.ran, found.alias) == ("plain", "chooser")
    assert found.alike == ()


def test_a_noisy_time_carries_its_interval() -> None:
    problem = Gemm(1024, 1024, 1024)
    (found,) = answers(
        run("gpu", [record("loud", "gemm", 10)], [gemm_case("loud", problem, 1000.0, noise=0.05)])
    )
    assert found.time == "1.00 ms ±1.6 %"


def test_without_a_gpu_a_wrong_kernel_has_no_bound_in_the_answer() -> None:
    held = sim_run()

    def broken(case: Measurement) -> Measurement:
        return replace(case, outcome="incorrect") if case.kernel == "naive" else case

    (found,) = answers(replace(held, cases=tuple(map(broken, held.cases))))
    assert found.kernel == "smem_tiled"


def test_a_time_that_no_bound_allows_is_not_explained_by_it() -> None:
    held = counted_run()

    def hurried(case: Measurement) -> Measurement:
        if case.timing is None or case.timing.cold is None:
            return case
        return replace(case, timing=replace(case.timing, cold=replace(case.timing.cold, median_us=10.0)))

    (found,) = answers(replace(held, cases=tuple(map(hurried, held.cases))))
    assert found.limiter is None
    assert found.doubt.startswith("faster than its bound")


def test_modelled_times_rank_where_nothing_was_timed() -> None:
    held = sim_run()
    (bounded,) = [found for found in answers(held) if found.size == "128"]
    usable = [case for case in held.cases if case.problem.label == "128" and case.outcome == "ok"]
    fast = next(case for case in usable if case.kernel != bounded.kernel)
    models = {bounded.kernel: Model(9.0, 8.0, 12.0), fast.kernel: Model(2.0, 1.7, 2.6, {"launch": 0.6})}
    cases = tuple(replace(case, model=models.get(case.kernel)) for case in held.cases)
    (found,) = [found for found in answers(replace(held, cases=cases)) if found.size == "128"]
    assert (found.kind, found.kernel, found.time_us) == ("modelled", fast.kernel, None)
    assert found.time == "2.0 µs modelled (1.7–2.6 µs)"
    assert (found.overhead and found.overhead.text) == "launch overhead 1.2 of 2.0 µs"
    only = tuple(
        replace(case, model=models[case.kernel]) for case in held.cases if case.kernel == fast.kernel
    )
    rest = tuple(case for case in held.cases if case.kernel != fast.kernel)
    (found,) = [found for found in answers(replace(held, cases=only + rest)) if found.size == "128"]
    assert f"not modelled: {bounded.kernel}" in found.cautions


def test_who_chose_anothers_code_is_no_step_from_any() -> None:
    held = chosen_run()
    rungs = [rung for size in groups(held)[0].sizes for rung in build_ladder(held, size).rungs]
    assert {rung.previous for rung in rungs if rung.case.chosen} == {None}
    assert any(rung.gain for rung in rungs)
