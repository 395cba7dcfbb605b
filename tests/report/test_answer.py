# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The answer of a ladder: one sentence that every renderer shows, and never more than is known."""

from dataclasses import replace

import pytest
from synthetic_runs import (
    Gemm,
    all_failed_run,
    chosen_run,
    compiled_run,
    counted_run,
    gemm_case,
    gemm_run,
    record,
    run,
    sim_run,
    transpose_run,
    tuned_run,
)

from gpuprof.analysis.answer import Answer, answer_of
from gpuprof.analysis.groups import groups
from gpuprof.analysis.ladder import build_ladder
from gpuprof.results import Measurement, Run


def answers(held: Run) -> list[Answer]:
    return [
        answer_of(held, group, build_ladder(held, size)) for group in groups(held) for size in group.sizes
    ]


def of_times(**times_us: float) -> Answer:
    problem = Gemm(1024, 1024, 1024)
    kernels = [record(name, "gemm", 10 * index) for index, name in enumerate(times_us, 1)]
    (found,) = answers(run("gpu", kernels, [gemm_case(name, problem, us) for name, us in times_us.items()]))
    return found


@pytest.mark.parametrize(
    ("held", "size", "text"),
    [
        (
            gemm_run(),
            "4096",
            "reg_2x1, 9.91 ms, 26.7 % of cublas, 20.7 % of the theoretical compute peak;"
            " smem_panel asked for more than the device has.",
        ),
        (
            counted_run(),
            "4096",
            "reg_2x1, 9.94 ms, bound by Shared memory and L1 (93.0 % of the time);"
            " smem_panel asked for more than the device has.",
        ),
        (chosen_run(), "4096", "by_size → float4_4x4, 4.42 ms, 46.5 % of the theoretical compute peak."),
        (
            tuned_run(),
            "4096",
            "mine BM=64 BN=32 STAGES=1, 2.60 ms, compute-bound: 79.0 % of the theoretical compute peak.",
        ),
        (
            sim_run(),
            "128",
            "by bounds, no times: naive cannot be faster than 62.7 ns (FMA (f32));"
            " smem_tiled cannot be faster than 533 ns (Shared memory and L1).",
        ),
        (compiled_run(), "128", "nothing ran: 2 of 2 kernels compiled."),
        (
            all_failed_run(),
            "512x1024x256",
            "no answer: 0 of 4 kernels ran correctly, none with a figure to compare; naive failed;"
            " smem_tiled timed out; wrong computed a wrong result.",
        ),
    ],
)
def test_the_sentence(held: Run, size: str, text: str) -> None:
    (found,) = [answer for answer in answers(held) if answer.size == size]
    assert found.text == text


def test_of_several_blocks_the_one_that_won_is_named() -> None:
    (found,) = answers(transpose_run())
    assert found.lead.startswith("naive_col 8x32, ")


def test_who_is_within_the_noise_is_said_to_be() -> None:
    found = of_times(first=1000.0, second=1001.0, third=1100.0)
    assert (found.kernel, found.alike) == ("first", ("second",))
    assert found.cautions == ("within the noise of second",)


def test_a_clear_lead_has_no_caution() -> None:
    assert of_times(first=1000.0, second=1100.0).cautions == ()


def test_what_a_kernel_chose_is_no_rival_of_it() -> None:
    problem = Gemm(1024, 1024, 1024)
    kernels = [record("plain", "gemm", 10), record("chooser", "gemm", 20)]
    cases = [gemm_case("plain", problem, 1001.0), gemm_case("chooser", problem, 1000.0)]
    (found,) = answers(run("gpu", kernels, [cases[0], replace(cases[1], chosen="plain")]))
    assert found.lead.startswith("chooser → plain")
    assert found.alike == ()


def test_a_noisy_time_carries_its_interval() -> None:
    problem = Gemm(1024, 1024, 1024)
    (found,) = answers(
        run("gpu", [record("loud", "gemm", 10)], [gemm_case("loud", problem, 1000.0, noise=0.05)])
    )
    assert found.lead.startswith("loud, 1.00 ms ±1.6 %")


def test_without_a_gpu_a_wrong_kernel_has_no_bound_in_the_answer() -> None:
    held = sim_run()

    def broken(case: Measurement) -> Measurement:
        return replace(case, outcome="incorrect") if case.kernel == "naive" else case

    (found,) = answers(replace(held, cases=tuple(map(broken, held.cases))))
    assert found.kernel == "smem_tiled"
    assert found.cautions == ("naive computed a wrong result",)


def test_more_than_three_names_are_counted() -> None:
    found = of_times(a=1000.0, b=1000.5, c=1001.0, d=1001.5, e=1002.0)
    assert found.cautions == ("within the noise of b, c, d and 1 more",)


def test_a_time_that_no_bound_allows_is_not_explained_by_it() -> None:
    held = counted_run()

    def hurried(case: Measurement) -> Measurement:
        if case.timing is None or case.timing.cold is None:
            return case
        return replace(case, timing=replace(case.timing, cold=replace(case.timing.cold, median_us=10.0)))

    (found,) = answers(replace(held, cases=tuple(map(hurried, held.cases))))
    assert found.because.startswith("faster than its bound (")
