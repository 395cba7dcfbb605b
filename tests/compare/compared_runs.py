# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Runs to compare: those of the other tests, with rounds whose times are chosen."""

import random
import sys
from math import exp
from pathlib import Path

from gpuprof.records import replace

TESTS = Path(__file__).parents[1]
sys.path += [str(TESTS / "unit"), str(TESTS / "report")]

import synthetic_runs as runs  # noqa: E402
from synthetic_runs import HOSTILE, gemm_case, record, run  # noqa: E402

from gpuprof.results import Measurement, Run, TimingPair  # noqa: E402
from gpuprof.statistics import joined, summarise  # noqa: E402

__all__ = ["HOSTILE", "TESTS", "gemm_case", "in_rounds", "ladder", "record", "run", "runs", "with_cases"]


def in_rounds(
    case: Measurement, rounds: int, spread: float = 0.003, factor: float = 1.0, seed: int = 0
) -> Measurement:
    """A timed case measured in so many rounds, whose medians scatter around `factor` times its own."""
    rng = random.Random(f"{seed} {case.kernel} {case.problem.label}")
    assert case.timing is not None
    assert case.timing.cold is not None
    median = case.timing.cold.median_us * factor
    timings = []
    for _ in range(rounds):
        middle = median * exp(rng.gauss(0, spread))
        timings.append(summarise([middle * (1 + 0.001 * step) for step in (-2, -1, 0, 1, 2, 3, -3)]))
    cold = joined(timings)
    return replace(case, timing=TimingPair(cold, case.timing.warm))


def ladder(rounds: int = 16, seed: int = 0, factors: dict[str, float] | None = None, **fields: object) -> Run:
    """The GEMM ladder of the report's tests in so many rounds, some kernels by factors slower."""
    whole = runs.gemm_run()
    cases = [
        in_rounds(case, rounds, factor=(factors or {}).get(case.kernel, 1.0), seed=seed)
        if case.timing
        else case
        for case in whole.cases
    ]
    return replace(whole, cases=tuple(cases), **fields)  # type: ignore[arg-type]


def with_cases(whole: Run, **changed: dict[str, object]) -> Run:
    """A run in which the cases of some kernels have other fields."""
    cases = [replace(case, **changed.get(case.kernel, {})) for case in whole.cases]
    return replace(whole, cases=tuple(cases))
