# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Odd habits, cheats, and what the public writes: right ones are called right, and the others are told."""

from pathlib import Path

import numpy as np
import pytest
from cheat_corpus import cheats, ladder
from problem_support import executor, measured, shipped_kernels
from public_corpus import executed, families, ladders

import gpuprof
from gpuprof.backends.sim import backend
from gpuprof.kernels.catalog import load_ladder
from gpuprof.measure.case import Case
from gpuprof.measure.execute import measure_case
from gpuprof.problems.problem import Problem

pytestmark = [pytest.mark.deep, pytest.mark.usefixtures("unread")]

TESTS = Path(__file__).parents[1]
LADDER = load_ladder(TESTS / "honest")
KERNELS = {kernel.id: kernel for kernel in LADDER.kernels}
#: Some that may know of an earlier launch, and some that cannot: the first are launched twice.
MAY_KNOW = {
    "counter_goes_on",
    "counter_sets_itself_back",
    "table",
    "alternates",
    "two_passes",
    "last_block_adds",
}
CANNOT_KNOW = {"plain", "prints", "atomics"}


@pytest.mark.parametrize("name", KERNELS)
def test_odd_kernel_is_right(name, monkeypatch):
    again, asked = backend.verify_again, []

    def watched(executed, seed):
        asked.append(seed)
        return again(executed, seed)

    monkeypatch.setattr(backend, "verify_again", watched)
    measurement = measured(KERNELS[name], Problem.of(LADDER.operation, (6, 200)))
    assert measurement.outcome == "ok", measurement.reason
    if name in MAY_KNOW | CANNOT_KNOW:
        assert asked == [1] * (name in MAY_KNOW)


def test_a_hundred_honest_kernels_are_measured_by_some_test():
    """The ladders by test_sim_ladders and others, the samples by test_samples_own, the odd ones here."""
    samples = list((TESTS.parent / "samples" / "own").rglob("*.cu"))
    assert len(shipped_kernels()) + len(samples) + len(KERNELS) >= 100


CHEATS = {cheat.kernel.id: cheat for cheat in cheats()}
#: What one launch of each block does not show, and what a GPU shows in many; the executor measures no time.
NEEDS_A_GPU = {"kept_by_input", "knows_the_seed", "wrong_at_the_ninth", "by_the_clock", "held_in_l2"}


def measured_cheat(name, seed=0, blocks=None):
    kernel = CHEATS[name].kernel
    case = Case.of(kernel, Problem.of(ladder().operation, (70, 90)), kernel.block)
    measurement, lost = measure_case(case, *executor(blocks=blocks, seed=seed))
    assert not lost
    return measurement


def test_every_cheat_says_what_both_backends_make_of_it():
    assert len(CHEATS) >= 25
    for name, cheat in CHEATS.items():
        assert cheat.verdicts.keys() == {"executor", "gpu"}, name
        assert cheat.verdicts["gpu"].outcome in ("incorrect", "refused", "honest"), name
    assert {n for n, cheat in CHEATS.items() if cheat.verdicts["executor"].outcome == "ok"} == NEEDS_A_GPU


@pytest.mark.parametrize("name", CHEATS)
def test_cheat_gets_its_verdict(name):
    verdict, measurement = CHEATS[name].verdicts["executor"], measured_cheat(name)
    assert measurement.outcome == verdict.outcome, measurement.reason
    assert verdict.words in (measurement.reason or "")
    assert measurement.timing is None


@pytest.mark.parametrize("name", ["kept_result", "kept_on_the_heap"])
def test_a_sample_of_blocks_is_launched_again_where_a_kernel_may_keep_results(name):
    measurement = measured_cheat(name, blocks=4)
    assert measurement.outcome == "incorrect"
    assert measurement.verification.checked_elements < 70 * 90
    assert measurement.reason.startswith("Right in its first launch, wrong in a later one: with other inputs")
    kept = "; all that it wrote is its result of the launch before, which it keeps in its module's memory."
    assert measurement.reason.endswith(kept)


@pytest.mark.parametrize("name", sorted(KERNELS.keys() - {"two_passes"}))
def test_a_sample_of_an_odd_kernel_is_right(name):
    measurement = measured(KERNELS[name], Problem.of(LADDER.operation, (60, 200)), blocks=4)
    assert measurement.outcome == "ok", measurement.reason


def test_results_of_one_seed_are_wrong_with_another():
    assert measured_cheat("knows_the_seed", seed=5).outcome == "incorrect"


def judged(body, *, n=64, block=64, grid=1, bounds="", expect=None, device="sim:h200", **options):
    """Run `body` for n integers x and y; unless told otherwise, y should be x."""
    text = f'extern "C" __global__ void {bounds} k(int n, const int *x, int *y) {{ {body} }}'
    x = np.arange(1, n + 1, dtype=np.int32)
    run = gpuprof.profile(
        gpuprof.Source(text, "k"),
        args={"n": n, "x": x, "y": None},
        expect={"y": x if expect is None else expect},
        grid=grid,
        block=block,
        device=device,
        **options,
    )
    return run.case()


COPY = "const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i];"


def test_alignment_that_the_card_does_not_give_is_a_remark():
    body = """__shared__ __align__(16384) int tile[64];
    tile[threadIdx.x] = x[threadIdx.x];
    y[threadIdx.x] = tile[threadIdx.x];"""
    case = judged(body)
    assert case.outcome == "ok"
    assert case.record.remarks == (
        "Shared memory of a block starts at 0x400 on the card, whatever alignment is asked for: tile lies at"
        " 0x400, which is not a multiple of 16,384",
    )
    assert judged(body, device="sim:a100").record.remarks == ()


COUNTER = '{ unsigned c; asm volatile("mov.u32 %0, %%envreg0;" : "=r"(c)); y[0] = (int)c; }'


def test_what_is_not_modelled_stops_the_run_only_where_it_is_reached():
    unreached = judged(f"if (n < 0) {COUNTER} {COPY}")
    assert unreached.outcome == "ok"
    reached = judged(f"if (blockIdx.x == 1 && threadIdx.x > 40) {COUNTER} {COPY}", grid=2, block=64)
    assert reached.outcome == "skipped"
    assert reached.reason == (
        "The executor does not model `%envreg0` (line 1), which thread (41, 0, 0) of block (1, 0, 0) reached."
        " Run it on a GPU instead."
    )


MANY_REGISTERS = f"""int v[100];
#pragma unroll
    for (int i = 0; i < 100; ++i) {{ v[i] = x[(threadIdx.x + i) % n]; asm volatile("" : "+r"(v[i])); }}
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 100; ++i) y[(threadIdx.x + 3 * i) % n] = v[i];
    __syncthreads(); {COPY}"""


def refusal(*args, **options):
    """Why a case did not run at all."""
    case = judged(*args, **options)
    assert case.outcome == "failed", case.reason
    return case.reason


def test_blocks_that_the_card_cannot_hold_are_refused():
    assert "No block fits on an SM of NVIDIA H200, for registers" in refusal(
        MANY_REGISTERS, n=1024, block=1024
    )
    assert judged(COPY, n=1024, block=1024).outcome == "ok"
    assert "cannot be launched" in refusal(COPY, n=1, block=(1, 1, 128))


@pytest.mark.parametrize(
    ("options", "fits", "does_not", "words"),
    [
        (
            {"n": 256, "bounds": "__launch_bounds__(128)"},
            {"grid": 2, "block": 128},
            {"grid": 1, "block": 256},
            "at most 128 threads: its .maxntid, which __launch_bounds__ set; the launch has 256x1",
        ),
        (
            {"n": 192, "bounds": "__cluster_dims__(2, 1, 1)"},
            {"grid": 4},
            {"grid": 3},
            "its clusters are of (2, 1, 1) blocks, which do not divide it",
        ),
        (
            {"n": 1024, "block": 1024, "cooperative": True},
            {"grid": 264},
            {"grid": 265},
            "A cooperative grid of 265 blocks does not fit: NVIDIA H200 holds 264 of them at once",
        ),
    ],
)
def test_launches_that_the_kernel_itself_rules_out_are_refused(options, fits, does_not, words):
    assert judged(COPY, **options, **fits).outcome == "ok"
    assert words in refusal(COPY, **options, **does_not)


# Samples of a grid.

LARGE = {"n": 1 << 18, "block": 256, "grid": 1024, "sim_blocks": 6}


@pytest.mark.parametrize("body", [COPY, COPY.replace("y[i] =", "y[i] = 0; __syncthreads(); y[i] =")])
def test_a_sample_whose_blocks_write_all_of_their_part_once_or_twice_is_believed(body):
    case = judged(body, **LARGE)
    assert (case.outcome, case.record.counters["barriers"].sampled_blocks) == ("ok", 6)


def test_a_grid_that_leaves_elements_out_is_not_believed_for_its_sample():
    """Blocks that write one element each, a grid three blocks short: a sample sees nothing wrong in it."""
    once = judged(COPY.replace("i < n", "i < n && threadIdx.x == 7"), **LARGE)
    assert once.outcome == "incorrect"
    assert "they were never written" in once.reason
    short = judged(COPY, **LARGE | {"grid": 1021})
    assert short.outcome == "incorrect"
    assert "768 of 262144 elements" in short.reason
    assert judged(COPY.replace("blockIdx.x", "(blockIdx.x ^ 1)"), **LARGE).outcome == "ok"


def test_a_grid_that_is_too_large_to_run_whole_is_left_in_doubt(monkeypatch):
    for most in ("_AFFORDABLE_INSTRUCTIONS", "_MOST_SLICE_STEPS"):
        monkeypatch.setattr(backend, most, 1e6)
    body = f"int s = 0; for (int j = 0; j < 100; ++j) s += x[j]; if (s == 1) y[0] = s; {COPY}"
    case = judged(body, **LARGE | {"grid": 1023, "sim_blocks": 2})
    assert case.outcome == "skipped"
    assert "261,888 of the 262,144 elements of y" in case.reason


PUBLIC = [(family, kernel) for family in families() for one in ladders(family) for kernel in one.kernels]


@pytest.mark.parametrize(
    ("family", "kernel"), [pytest.param(*pair, id=f"{pair[0].name}/{pair[1].id}") for pair in PUBLIC]
)
def test_each_gets_its_verdict(family, kernel):
    (row,) = executed(family, (f"{family.name}/{kernel.id}/",))
    assert not row.complaint, row.complaint


def test_there_are_many():
    assert len(PUBLIC) >= 120
    assert sum("bad_" in kernel.id for _, kernel in PUBLIC) >= 20
